// Command score reads what runs of the official conformance suite left behind
// and counts it. The suite's own exit status hides warnings, and takes a
// scenario in which nothing was checked for passed.
//
//	score -notyet 'auth/*,tasks-*' -o RESULTS.md NAME=DIR…
//
// Each NAME is a leg, each DIR the suite's output folder for it.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	notYet := flag.String("notyet", "", "`patterns` of scenarios that are listed and not counted, with commas between")
	out := flag.String("o", "", "write the table to this `file`, too")
	flag.Parse()
	var legs []leg
	for _, arg := range flag.Args() {
		name, dir, _ := strings.Cut(arg, "=")
		l, err := read(name, dir, strings.Split(*notYet, ","))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		legs = append(legs, l)
	}
	table, ok := report(legs)
	fmt.Print(table)
	if *out != "" {
		if err := os.WriteFile(*out, []byte("# The official conformance suite\n\nWritten by `conformance/run`.\n\n```\n"+table+"```\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// A scenario is what one run of one scenario came to.
type scenario struct {
	name                               string
	success, failure, warning, skipped int
	messages                           []string
}

type leg struct {
	name      string
	scenarios []scenario
	notYet    []string
}

// stamp is what the suite puts behind a scenario's name.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

func read(name, dir string, notYet []string) (leg, error) {
	l := leg{name: name}
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		s := scenario{name: stamp.ReplaceAllString(strings.TrimPrefix(path.Dir(file), "server-"), "")}
		if slices.ContainsFunc(notYet, func(p string) bool { ok, _ := path.Match(p, s.name); return ok }) {
			l.notYet = append(l.notYet, s.name)
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil {
			err = s.count(text)
		}
		l.scenarios = append(l.scenarios, s)
		return err
	})
	slices.SortFunc(l.scenarios, func(a, b scenario) int { return cmp.Compare(a.name, b.name) })
	if err == nil && len(l.scenarios) == 0 {
		err = fmt.Errorf("%s: nothing was run", name)
	}
	return l, err
}

// count counts the checks of a scenario.
func (s *scenario) count(text []byte) error {
	var checks []struct{ ID, Status, ErrorMessage string }
	if err := json.Unmarshal(text, &checks); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			s.success++
		case "FAILURE":
			s.failure++
		case "WARNING":
			s.warning++
		case "SKIPPED":
			s.skipped++
		}
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			s.messages = append(s.messages, fmt.Sprintf("%s %s: %s", c.Status, c.ID, c.ErrorMessage))
		}
	}
	return nil
}

// report writes the table and says whether nothing failed or warned.
func report(legs []leg) (table string, ok bool) {
	var b strings.Builder
	var passed, failed, warnings, skipped int
	notYet := map[string]bool{}
	for _, l := range legs {
		var p, f, w, s, checks int
		var bad []string
		for _, c := range l.scenarios {
			checks += c.success
			switch {
			case c.failure > 0 || c.success == 0 && c.skipped == 0:
				f++
				bad = append(bad, "  FAILED "+c.name)
			case c.warning > 0:
				w++
				bad = append(bad, "  WARNED "+c.name)
			case c.success == 0:
				s++
				bad = append(bad, "  skipped "+c.name)
			default:
				p++
			}
			for _, m := range c.messages {
				bad = append(bad, "    "+m)
			}
		}
		for _, name := range l.notYet {
			notYet[name] = true
		}
		fmt.Fprintf(&b, "%-28s %3d passed, %d failed, %d warned, %d skipped, %d not yet (%d checks)\n", l.name, p, f, w, s, len(l.notYet), checks)
		for _, line := range bad {
			b.WriteString(line + "\n")
		}
		passed, failed, warnings, skipped = passed+p, failed+f, warnings+w, skipped+s
	}
	if len(notYet) > 0 {
		names := make([]string, 0, len(notYet))
		for name := range notYet {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(&b, "\nnot yet: %s\n\n", strings.Join(names, " "))
	}
	fmt.Fprintf(&b, "conformance: %d passed, %d failed, %d warnings, %d skipped\n", passed, failed, warnings, skipped)
	return b.String(), failed == 0 && warnings == 0
}
