package mcp

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

// completeAreas are the areas of the catalogue in which every MUST has to be
// shown. Whoever completes an area adds it.
var completeAreas = []string{
	"base", "meta", "errors", "stateless", "patterns", "version", "lifecycle", "caps", "discover", "mrtr", "subs",
	"cancel", "progress", "timeout", "ping", "stdio", "transport", "tools", "resources", "prompts", "completion",
	"logging", "pagination", "caching", "elicit", "sampling", "roots", "icons", "batch", "deprecated", "schema",
	"http", "sse", "auth", "secbp",
}

// notShowable are the rows that no test can show, and why.
var notShowable = map[string]string{
	"resources.error.not-found-legacy": "-32602 with the URI at every revision (a client understands -32002, too): what the newest revision requires hurts nobody at the older ones",

	"cancel.tasks":        noTasks,
	"progress.task-stop":  noTasks,
	"progress.task-token": noTasks,

	"secbp.url.no-shell": "the package opens no page: OAuth.Open is the program's, and cmd/mcp prints what to open",

	"ext.auth.ema.idp-pair":     noIdentityProvider,
	"ext.auth.ema.idp-validate": noIdentityProvider,
	"ext.auth.ema.idp-scopes":   noIdentityProvider,
	"ext.auth.ema.jag-claims":   noIdentityProvider,
	"ext.auth.ema.jag-typ":      noIdentityProvider,
	"ext.auth.ema.privacy":      noIdentityProvider,
	"ext.auth.ema.sso-state":    "the program signs its user on, and hands over the ID token",
	"ext.auth.wif.admin":        "who runs an authorization server manages whom it trusts",
	"auth.scope-of-spec.stdio":  "programs on standard input and output get credentials from the environment: nothing here is in the way",

	"tools.error.invalid-args-old": "two pages of 2025-06-18 differ; arguments that fail the schema are isError at every revision",
}

const noIdentityProvider = "the identity provider is none of the three parties here"

// What is still to be built.
const (
	noTasks = "there are no tasks yet"
)

// TestRequirements checks the catalogue and what tests and transcripts say
// they show of it. With -v it prints what is shown, by area, and what is not.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile("conformance/requirements.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows, faults := parseCatalogue(string(text))
	for _, fault := range faults {
		t.Errorf("conformance/requirements.tsv: %s", fault)
	}
	shown, err := shownIn(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for id, places := range shown {
		if _, ok := catalogue()[id]; !ok {
			t.Errorf("%s: the catalogue has no requirement %q", strings.Join(places, ", "), id)
		}
	}
	for id := range notShowable {
		if _, ok := catalogue()[id]; !ok || shown[id] != nil {
			t.Errorf("%s is listed as not showable, but is shown or not in the catalogue", id)
		}
	}
	areas := surveyAreas(rows, shown)
	t.Log("\n" + reportAreas(areas))
	for _, name := range completeAreas {
		if areas[name] == nil {
			t.Errorf("completeAreas: the catalogue has no area %q", name)
			continue
		}
		for _, id := range areas[name].must.open {
			t.Errorf("no test shows %s: %s", id, catalogue()[id].text)
		}
	}
}

// A tally counts the requirements of one level in one area.
type tally struct {
	shown, all int
	open       []string // ids of those not shown
}

func (c *tally) add(id string, shown bool) {
	c.all++
	if shown {
		c.shown++
	} else {
		c.open = append(c.open, id)
	}
}

type areaTally struct{ must, should tally }

// surveyAreas counts by area what is shown. Rows for applications and rows that no
// test can show are left out.
func surveyAreas(rows []requirement, shown map[string][]string) map[string]*areaTally {
	areas := map[string]*areaTally{}
	for _, r := range rows {
		if r.role == "app" || r.level == "MAY" || notShowable[r.id] != "" {
			continue
		}
		area := areas[r.area()]
		if area == nil {
			area = new(areaTally)
			areas[r.area()] = area
		}
		if r.level == "MUST" {
			area.must.add(r.id, len(shown[r.id]) > 0)
		} else {
			area.should.add(r.id, len(shown[r.id]) > 0)
		}
	}
	return areas
}

func reportAreas(areas map[string]*areaTally) string {
	var out, open strings.Builder
	var must, should tally
	line := func(name string, must, should tally) {
		fmt.Fprintf(&out, "%-12s MUST %4d of %4d   SHOULD %4d of %4d\n", name, must.shown, must.all, should.shown, should.all)
	}
	for _, name := range slices.Sorted(maps.Keys(areas)) {
		a := areas[name]
		line(name, a.must, a.should)
		must.shown, must.all = must.shown+a.must.shown, must.all+a.must.all
		should.shown, should.all = should.shown+a.should.shown, should.all+a.should.all
		for _, id := range a.must.open {
			fmt.Fprintf(&open, "  MUST    %s\n", id)
		}
		for _, id := range a.should.open {
			fmt.Fprintf(&open, "  SHOULD  %s\n", id)
		}
	}
	line("all", must, should)
	if open.Len() > 0 {
		fmt.Fprintf(&out, "\nnot shown:\n%s", open.String())
	}
	for _, id := range slices.Sorted(maps.Keys(notShowable)) {
		fmt.Fprintf(&out, "\nno test can show %s: %s\n", id, notShowable[id])
	}
	return out.String()
}

// shownIn collects from the tests and transcripts of a module which ids are
// shown, and where. Folders that are modules of their own do not belong to it.
func shownIn(module fs.FS) (map[string][]string, error) {
	shown := map[string][]string{}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := fs.Stat(module, path.Join(name, "go.mod")); name != "." && (err == nil || d.Name()[0] == '.') {
				return fs.SkipDir
			}
			return nil
		}
		var ids map[string]int
		inTestdata := strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/")
		switch {
		case strings.HasSuffix(name, "_test.go") && !inTestdata:
			ids, err = shownByTest(module, name)
		case strings.HasSuffix(name, ".txtar") && inTestdata:
			ids, err = shownByTranscript(module, name)
		}
		for id, line := range ids {
			shown[id] = append(shown[id], fmt.Sprintf("%s:%d", name, line))
		}
		return err
	})
	return shown, err
}

// shownByTest returns the string literals of a file's shows calls and of the
// fields named shows in its tables, each with its line.
func shownByTest(module fs.FS, name string) (map[string]int, error) {
	src, err := fs.ReadFile(module, name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ids := map[string]int{}
	var odd error
	literals := func(exprs []ast.Expr) {
		for _, e := range exprs {
			lit, ok := e.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				odd = fmt.Errorf("%s: what is shown must be a string literal", fset.Position(e.Pos()))
				continue
			}
			id, _ := strconv.Unquote(lit.Value)
			ids[id] = fset.Position(lit.Pos()).Line
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if fun, ok := n.Fun.(*ast.Ident); !ok || fun.Name != "shows" || len(n.Args) == 0 {
				return true
			}
			if n.Ellipsis == token.NoPos {
				literals(n.Args[1:])
			} else if sel, ok := n.Args[1].(*ast.SelectorExpr); !ok || sel.Sel.Name != "shows" {
				odd = fmt.Errorf("%s: only a table's field named shows can be spread", fset.Position(n.Pos()))
			}
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			list, isList := n.Value.(*ast.CompositeLit)
			if ok && isList && key.Name == "shows" {
				literals(list.Elts)
			}
		}
		return true
	})
	return ids, odd
}

// shownByTranscript returns the ids in the lines "requirements: id id …" of a
// transcript's header, each with its line. The lines may be comments ("#").
func shownByTranscript(module fs.FS, name string) (map[string]int, error) {
	text, err := fs.ReadFile(module, name)
	if err != nil {
		return nil, err
	}
	ids := map[string]int{}
	for i, line := range bytes.Split(txtar.Parse(text).Comment, []byte("\n")) {
		list, ok := strings.CutPrefix(strings.TrimLeft(string(line), "# \t"), "requirements:")
		for _, id := range strings.Fields(list) {
			if ok {
				ids[id] = i + 1
			}
		}
	}
	return ids, nil
}

func TestRequirementsCatalogueFaults(t *testing.T) {
	const head = "id\trevisions\trole\tlevel\ttext\tsource\thow\n"
	const row = "a.b\t2025-06-18..2025-11-25\tboth\tMUST\ttext\tsource\thow\n"
	if rows, faults := parseCatalogue(head + row); len(rows) != 1 || faults != nil {
		t.Errorf("a good catalogue: %v, %v", rows, faults)
	}
	for name, text := range map[string]string{
		"no head":      row,
		"twice":        head + row + row,
		"six fields":   head + strings.Replace(row, "\thow", "", 1),
		"eight fields": head + strings.Replace(row, "\thow", "\thow\tmore", 1),
		"id":           head + strings.Replace(row, "a.b", "a", 1),
		"revisions":    head + strings.Replace(row, "..2025-11-25", "..", 1),
		"role":         head + strings.Replace(row, "both", "peer", 1),
		"level":        head + strings.Replace(row, "MUST", "must", 1),
		"no text":      head + strings.Replace(row, "\ttext", "\t ", 1),
		"blank line":   head + "\n" + row,
	} {
		if _, faults := parseCatalogue(text); len(faults) != 1 {
			t.Errorf("%s: faults %v", name, faults)
		}
	}
}

func TestRequirementsCollected(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	module := fstest.MapFS{
		"go.mod":                       file("module m\n"),
		"a_test.go":                    file("package m\nfunc f() {\n\tshows(t, \"a.b\", `a.c`)\n\tshows(t, row.shows...)\n}\nvar rows = []row{{name: \"no\", shows: []string{\"a.d\"}}}\n"),
		"cmd/x/b_test.go":              file("package x\nfunc f() { shows(t, \"b.a\") }\n"),
		"x.go":                         file("package m\nfunc f() { shows(t, \"no.a\") }\n"),
		"bench/go.mod":                 file("module bench\n"),
		"bench/c_test.go":              file("package c\nfunc f() { shows(t, \"no.b\") }\n"),
		"testdata/a/b.txtar":           file("# A talk.\n# requirements: c.a c.b\nrequirements: c.c\n-- x --\nrequirements: no.c\n"),
		"testdata/not.txt":             file("requirements: no.d\n"),
		"testdata/fuzz/x/d_test.go":    file("not go"),
		".hidden/e_test.go":            file("not go"),
		"cmd/x/testdata/deep/e.txtar":  file("requirements: c.d\n"),
		"conformance/requirements.tsv": file(""),
	}
	shown, err := shownIn(module)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"a.b": {"a_test.go:3"}, "a.c": {"a_test.go:3"}, "a.d": {"a_test.go:6"}, "b.a": {"cmd/x/b_test.go:2"},
		"c.a": {"testdata/a/b.txtar:2"}, "c.b": {"testdata/a/b.txtar:2"}, "c.c": {"testdata/a/b.txtar:3"},
		"c.d": {"cmd/x/testdata/deep/e.txtar:1"},
	}
	if !maps.EqualFunc(shown, want, slices.Equal) {
		t.Errorf("collected %v\nwant      %v", shown, want)
	}
	for _, bad := range []string{`shows(t, id)`, `shows(t, "a."+b)`, `shows(t, ids...)`, `shows(t, c.ids...)`, `_ = c{shows: []string{id}}`} {
		module := fstest.MapFS{"a_test.go": file("package m\nfunc f() { " + bad + " }\n")}
		if _, err := shownIn(module); err == nil {
			t.Errorf("%s: no error, so its ids would be lost", bad)
		}
	}
}
