package mcp

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// What every room's tests share: which requirements a test shows.

// A requirement is one row of conformance/requirements.tsv.
type requirement struct {
	id        string // area.name…
	revisions string // "2026-07-28", or "first..last"
	role      string // client, server, both, as (authorization server), app (what no library can carry)
	level     string // MUST, SHOULD, MAY
	text      string // what is required
	source    string // where it is written
	how       string // how it can be shown
}

// area is the part of the id before the first dot.
func (r requirement) area() string {
	area, _, _ := strings.Cut(r.id, ".")
	return area
}

var requirementFields = []*regexp.Regexp{
	regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9-]+)+$`),
	regexp.MustCompile(`^\d{4}-\d\d-\d\d(\.\.\d{4}-\d\d-\d\d)?$`),
	regexp.MustCompile(`^(client|server|both|as|app)$`),
	regexp.MustCompile(`^(MUST|SHOULD|MAY)$`),
	regexp.MustCompile(`\S`), regexp.MustCompile(`\S`), regexp.MustCompile(`\S`),
}

// parseCatalogue reads the rows of a catalogue and says what is wrong with
// them: a field that is not of its form, an id given twice.
func parseCatalogue(text string) (rows []requirement, faults []string) {
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	if lines[0] != "id\trevisions\trole\tlevel\ttext\tsource\thow" {
		faults = append(faults, "line 1: not the head line of the catalogue")
	}
	first := map[string]int{}
rows:
	for i, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) != len(requirementFields) {
			faults = append(faults, fmt.Sprintf("line %d: %d fields", i+2, len(fields)))
			continue
		}
		for n, form := range requirementFields {
			if !form.MatchString(fields[n]) {
				faults = append(faults, fmt.Sprintf("line %d: field %d is %q", i+2, n+1, fields[n]))
				continue rows
			}
		}
		if n := first[fields[0]]; n != 0 {
			faults = append(faults, fmt.Sprintf("line %d: %s stands in line %d already", i+2, fields[0], n))
			continue
		}
		first[fields[0]] = i + 2
		rows = append(rows, requirement{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]})
	}
	return rows, faults
}

// catalogue is the catalogue of the project by id. What is wrong with it is
// for TestRequirements to say.
var catalogue = sync.OnceValue(func() map[string]requirement {
	text, err := os.ReadFile("conformance/requirements.tsv")
	if err != nil {
		panic(err)
	}
	byID := map[string]requirement{}
	rows, _ := parseCatalogue(string(text))
	for _, r := range rows {
		byID[r.id] = r
	}
	return byID
})

// shows declares which requirements a test shows. It is the first statement
// of the test and its arguments are string literals, since TestRequirements
// reads them from the source; or it is shows(t, c.shows...), where c is a row
// of the test's table whose field shows is a []string of literals.
func shows(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, ok := catalogue()[id]; !ok {
			t.Errorf("shows: the catalogue has no requirement %q", id)
		}
	}
}
