package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// What every room's tests share: which requirements a test shows, and the
// check that it leaves nothing behind.

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

// leakCheck fails the test if, after its other cleanups, something is left
// that was not there now: a goroutine and, on Linux, a file descriptor or a
// child process. It gives them five seconds to end. Not for parallel tests,
// whose neighbours it would blame.
func leakCheck(t testing.TB) {
	t.Helper()
	leakCheckWithin(t, 5*time.Second)
}

func leakCheckWithin(t testing.TB, patience time.Duration) {
	before := resources()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			left := resources()
			for name := range before {
				delete(left, name)
			}
			if len(left) > 0 && time.Now().Before(end) {
				continue
			}
			for name, what := range left {
				t.Errorf("left behind: %s %s", name, what)
			}
			return
		}
	})
}

// resources returns what this process holds now, by name, with more words on
// each. A name stays with its thing for as long as that lives.
func resources() map[string]string {
	held := map[string]string{}
	for _, goroutine := range strings.Split(allStacks(), "\n\n") {
		name, stack, _ := strings.Cut(goroutine, " ")
		number, stack, _ := strings.Cut(stack, " ")
		if !strings.Contains(stack, "os/signal.loop") { // started once, for good
			held[name+" "+number] = stack
		}
	}
	if runtime.GOOS != "linux" {
		return held
	}
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:[event") { // the runtime's own poller
			held["descriptor "+fd.Name()+" of "+target] = ""
		}
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat) // gone meanwhile: no text
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) {
			held["child "+strings.Split(stat, "/")[2]] = string(text)
		}
	}
	return held
}

func allStacks() string {
	for size := 1 << 16; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return string(buf[:n])
		}
	}
}

// A recorder is a testing.TB for tests of test helpers.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestLeakCheck(t *testing.T) {
	leakCheck(t)
	r := &recorder{TB: t}
	leakCheckWithin(r, 20*time.Millisecond)
	stop := make(chan bool)
	go func() { <-stop }()
	want := 1
	if runtime.GOOS == "linux" {
		f, err := os.Open("mcp_test.go")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		child := exec.Command("sleep", "60")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		defer child.Wait()
		defer child.Process.Kill()
		want = 3
	}
	r.cleanups[0]()
	if len(r.errors) < want {
		t.Errorf("%d leaks of %d found: %q", len(r.errors), want, r.errors)
	}
	for _, kind := range []string{"goroutine", "descriptor", "child"}[:want] {
		if !strings.Contains(strings.Join(r.errors, "\n"), "left behind: "+kind) {
			t.Errorf("the %s was not found: %q", kind, r.errors)
		}
	}
	close(stop)
	r = &recorder{TB: t}
	leakCheckWithin(r, 5*time.Second)
	wait := make(chan bool)
	go func() { <-wait }()
	time.AfterFunc(30*time.Millisecond, func() { close(wait) })
	if r.cleanups[0](); r.errors != nil {
		t.Errorf("what ended in time was taken for a leak: %q", r.errors)
	}
}
