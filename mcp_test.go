package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What every room's tests share: which requirements a test shows, and the
// check that it leaves nothing behind. Then the tests of the house itself: how
// its files may lean on each other, and that they can be taken away.

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

// TestMain has every test of the package leave nothing behind: one that does
// fails, by its name. Tests run one after the other, which TestHouseSerial
// checks, so that what is new after a test is that test's.
func TestMain(m *testing.M) {
	tests := hidden[[]testing.InternalTest](m, "tests")
	if os.Getenv(leakMode) != "" {
		leakPatience = 100 * time.Millisecond
		*tests = []testing.InternalTest{{Name: "TestThatLeaks", F: leak}, {Name: "TestAfterIt", F: func(*testing.T) {}}}
	}
	for i, test := range *tests {
		(*tests)[i].F = func(t *testing.T) {
			leakCheck(t)
			test.F(t)
		}
	}
	targets := hidden[[]testing.InternalFuzzTarget](m, "fuzzTargets")
	for i, target := range *targets {
		(*targets)[i].Fn = func(f *testing.F) {
			if !fuzzing() { // the fuzzer has processes and goroutines of its own
				leakCheck(f)
			}
			target.Fn(f)
		}
	}
	os.Exit(m.Run())
}

// hidden returns a field of m that package testing keeps to itself. It is the
// one place where all tests can be wrapped without a line in each.
func hidden[T any](m *testing.M, name string) *T {
	field := reflect.ValueOf(m).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		panic("testing.M has changed: TestMain cannot wrap its " + name)
	}
	return (*T)(field.Addr().UnsafePointer())
}

// fuzzing reports whether this process looks for new inputs, or tries those
// that another one thought of.
func fuzzing() bool {
	return flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.fuzzworker").Value.String() == "true"
}

// leakPatience is how long what a test started may take to end.
var leakPatience = 5 * time.Second

// leakCheck fails the test if, after its other cleanups, something is left
// that was not there now: a goroutine and, on Linux, a file descriptor or a
// child process. Every test has it by TestMain; a subtest may call it to be
// blamed by its own name, unless it is parallel.
func leakCheck(t testing.TB) {
	t.Helper()
	leakCheckWithin(t, leakPatience)
}

func leakCheckWithin(t testing.TB, patience time.Duration) {
	before := heldNow()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			left := heldNow()
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

// heldNow returns what this process holds now, by name, with more words on
// each. A name stays with its thing for as long as that lives.
func heldNow() map[string]string {
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

// A tbRecorder is a testing.TB for tests of test helpers.
type tbRecorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *tbRecorder) Helper()          {}
func (r *tbRecorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *tbRecorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestLeakCheck(t *testing.T) {
	leakCheck(t)
	r := &tbRecorder{TB: t}
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
	r = &tbRecorder{TB: t}
	leakCheckWithin(r, 5*time.Second)
	wait := make(chan bool)
	go func() { <-wait }()
	time.AfterFunc(30*time.Millisecond, func() { close(wait) })
	if r.cleanups[0](); r.errors != nil {
		t.Errorf("what ended in time was taken for a leak: %q", r.errors)
	}
}

// leakMode is the environment variable that turns the test binary into one
// with a test that leaks what the variable names.
const leakMode = "MCP_TEST_LEAK"

func leak(t *testing.T) {
	switch os.Getenv(leakMode) {
	case "goroutine":
		go func() { select {} }()
	case "descriptor":
		f, err := os.Open("mcp_test.go")
		if err != nil {
			t.Fatal(err)
		}
		runtime.SetFinalizer(f, nil) // or the collector may close it
		leaked = f
	case "child":
		child := exec.Command("sleep", "3") // outlives this process, not by much
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		leaked = child
	}
}

var leaked any

// TestLeaksFailByName runs this binary with a test that leaks: that one fails,
// and the one after it does not.
func TestLeaksFailByName(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"goroutine"}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, "descriptor", "child")
	}
	for _, kind := range kinds {
		cmd := exec.Command(self, "-test.run=^Test", "-test.v")
		cmd.Env = append(os.Environ(), leakMode+"="+kind)
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err == nil || !strings.Contains(text, "--- FAIL: TestThatLeaks") || !strings.Contains(text, "left behind: "+kind) || !strings.Contains(text, "--- PASS: TestAfterIt") {
			t.Errorf("a %s that is left behind: %v\n%s", kind, err, text)
		}
	}
}

// rooms are the files of the package from the bottom up. A file may use what
// is declared in its own room and in those before it. A room is one file, and
// what it is split into by platform or role: stdio_unix.go, auth_client.go.
// Of jsonrpc.go, schema.go needs only how JSON is read and strings are
// written, so both can be carried away together and used elsewhere.
var rooms = []string{"jsonrpc", "schema", "mcp", "session", "server", "client", "stdio", "httpstream", "sse", "auth", "tasks"}

// removable are the rooms that can be deleted, with the rooms that then have
// to go too.
var removable = map[string][]string{"stdio": nil, "httpstream": {"sse", "auth"}, "sse": nil, "auth": nil, "tasks": nil}

// guests are the imports that only some rooms may have.
var guests = map[string][]string{"net/http": {"httpstream", "sse", "auth"}, "os/exec": {"stdio"}}

func roomOf(file string) string {
	room, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".go"), "_")
	return room
}

// houseFiles returns the package's files without tests, for every platform.
func houseFiles(t *testing.T) (files []string, present map[string]bool) {
	t.Helper()
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	present = map[string]bool{}
	for _, file := range all {
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
			present[roomOf(file)] = true
		}
	}
	return files, present
}

// goTool runs the go command and returns what it prints.
func goTool(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s go %s: %v\n%s", strings.Join(env, " "), strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// legalSubsets returns every set of rooms that may be deleted from those
// present, the empty one among them.
func legalSubsets(present map[string]bool) (subsets []map[string]bool) {
	var names []string
	for _, room := range rooms {
		if _, ok := removable[room]; ok && present[room] {
			names = append(names, room)
		}
	}
subset:
	for bits := range 1 << len(names) {
		gone := map[string]bool{}
		for i, name := range names {
			if bits&(1<<i) != 0 {
				gone[name] = true
			}
		}
		for name := range gone {
			for _, other := range removable[name] {
				if present[other] && !gone[other] {
					continue subset
				}
			}
		}
		subsets = append(subsets, gone)
	}
	return subsets
}

func TestHouseSubsetsCounted(t *testing.T) {
	present := map[string]bool{}
	for _, room := range rooms {
		present[room] = true
	}
	if n := len(legalSubsets(present)); n != 2*2*(4+1) { // stdio, tasks, and of the HTTP rooms: any of two, or all
		t.Errorf("%d subsets of the whole house", n)
	}
	if n := len(legalSubsets(map[string]bool{"mcp": true, "stdio": true})); n != 2 {
		t.Errorf("%d subsets where only stdio can go", n)
	}
}

// TestHouseSubsets builds and vets the package with every legal subset of its
// files deleted, and without HTTP by build tag. The subsets are the folders of
// one temporary module.
func TestHouseSubsets(t *testing.T) {
	files, present := houseFiles(t)
	module := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(module, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", []byte("module house\n\ngo 1.24.0\n"))
	var withoutHTTP []string
	for _, gone := range legalSubsets(present) {
		dir := "all"
		for _, room := range rooms {
			if gone[room] {
				dir += "_no_" + room
			}
		}
		if err := os.Mkdir(filepath.Join(module, dir), 0o777); err != nil {
			t.Fatal(err)
		}
		if gone["httpstream"] || !present["httpstream"] {
			withoutHTTP = append(withoutHTTP, "./"+dir)
		}
		for _, file := range files {
			if gone[roomOf(file)] {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(dir, file), data)
		}
	}
	for _, tags := range []string{"-tags=", "-tags=mcp_nohttp"} {
		// without the temporary folder's name in it, the result is in the cache next time
		goTool(t, module, nil, "build", "-trimpath", tags, "./...")
		goTool(t, module, nil, "vet", "-trimpath", tags, "./...")
	}
	deps := goTool(t, module, nil, append([]string{"list", "-deps"}, withoutHTTP...)...)
	deps += goTool(t, module, nil, "list", "-deps", "-tags=mcp_nohttp", "./...")
	if slices.Contains(strings.Fields(deps), "net/http") {
		t.Error("net/http is reachable without the HTTP files")
	}
}

// housePlatforms are what the package has to build for, beside the platform
// that the tests run on.
var housePlatforms = [][]string{
	{"GOOS=windows", "GOARCH=amd64"},
	{"GOOS=darwin", "GOARCH=arm64"},
	{"GOOS=freebsd", "GOARCH=amd64"},
	{"GOOS=js", "GOARCH=wasm"},
	{"GOOS=wasip1", "GOARCH=wasm"},
	{"GOOS=plan9", "GOARCH=amd64"},
	{"GOOS=linux", "GOARCH=arm", "GOARM=7"},
}

// TestHouseStdioLinksNoOAuth looks into a program that serves a child's standard
// input and output: the linker leaves out what nobody calls.
func TestHouseStdioLinksNoOAuth(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module small\n\ngo 1.24.0\n\nrequire mcpkit/mcp v0.0.0\n\nreplace mcpkit/mcp => " + here + "\n",
		"main.go": "package main\n\nimport (\n\t\"context\"\n\n\t\"mcpkit/mcp\"\n)\n\nfunc main() {\n\tmcp.NewServer(mcp.Implementation{}, nil).Run(context.Background(), mcp.Stdio())\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	goTool(t, module, nil, "build", "-trimpath", "-o", "small.exe", ".")
	symbols := goTool(t, module, nil, "tool", "nm", "small.exe")
	for _, name := range []string{"mcp.(*OAuth)", "mcp.(*AuthServer)", "mcp.parseJWT", "mcp.RequireBearer", "mcp.guardedClient", "crypto/rsa.(*PrivateKey).Sign"} {
		if strings.Contains(symbols, name) {
			t.Errorf("%s is linked", name)
		}
	}
	if !strings.Contains(symbols, "mcp.(*Server).Run") {
		t.Error("the names are not found at all")
	}
}

// TestHousePlatforms builds for every platform, without the HTTP files: they
// have no platform in them, and net/http takes minutes to build that often.
// .ci/run vets the whole.
func TestHousePlatforms(t *testing.T) {
	for _, env := range housePlatforms {
		goTool(t, ".", append(env, "CGO_ENABLED=0"), "build", "-tags=mcp_nohttp", ".")
	}
}

// TestHouseArrows checks that a file uses only what is above it, for each
// platform that has files of its own.
func TestHouseArrows(t *testing.T) {
	files, _ := houseFiles(t)
	for _, file := range files {
		if !slices.Contains(rooms, roomOf(file)) {
			t.Errorf("%s belongs to no room", file)
		}
	}
	checked := map[string]bool{}
	for _, c := range []struct {
		env  []string
		tags string
	}{{nil, ""}, {housePlatforms[0], "mcp_nohttp"}, {housePlatforms[1], "mcp_nohttp"}, {housePlatforms[3], "mcp_nohttp"}} {
		fset := token.NewFileSet()
		names, imports := exportData(t, fset, c.env, c.tags)
		var parsed []*ast.File
		for _, name := range names {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
			checked[name] = true
		}
		faults, err := upwardUses(fset, parsed, imports)
		if err != nil {
			t.Fatalf("%v: %v", c.env, err)
		}
		for _, fault := range faults {
			t.Errorf("%v %s", c.env, fault)
		}
	}
	for _, file := range files {
		if !checked[file] {
			t.Errorf("%s is built for none of the platforms that were checked", file)
		}
	}
}

// exportData returns the package's files for one platform, and an importer of
// what they import.
func exportData(t *testing.T, fset *token.FileSet, env []string, tags string) (files []string, imports types.Importer) {
	t.Helper()
	env = append(slices.Clone(env), "CGO_ENABLED=0")
	exports := map[string]string{}
	list := json.NewDecoder(strings.NewReader(goTool(t, ".", env, "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", "-tags="+tags, ".")))
	for {
		var p struct {
			ImportPath, Export string
			GoFiles            []string
		}
		if err := list.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		files = p.GoFiles // the package itself is listed last, after all it needs
	}
	return files, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

// upwardUses type-checks the files as one package and returns where one of
// them uses what a later room declares.
func upwardUses(fset *token.FileSet, files []*ast.File, imports types.Importer) (faults []string, err error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	pkg, err := config.Check("mcp", fset, files, info)
	if err != nil {
		return nil, err
	}
	floor := func(pos token.Pos) int { return slices.Index(rooms, roomOf(fset.Position(pos).Filename)) }
	for ident, object := range info.Uses {
		if object.Pkg() == pkg && floor(ident.Pos()) < floor(object.Pos()) {
			faults = append(faults, fmt.Sprintf("%s uses %s, which %s declares", fset.Position(ident.Pos()), object.Name(), filepath.Base(fset.Position(object.Pos()).Filename)))
		}
	}
	slices.Sort(faults)
	return faults, nil
}

func TestHouseArrowsFound(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for name, src := range map[string]string{
		"mcp.go":        "package mcp\ntype T struct{ F int }\nfunc (T) M() { later() }\n",
		"session.go":    "package mcp\nfunc later() { var t T; t.M(); t.F = 1; other() }\n",
		"stdio_unix.go": "package mcp\nfunc other() { third() }\n",
		"stdio.go":      "package mcp\nfunc third() { other() }\n",
		"jsonrpc.go":    "package mcp\nvar f = struct{ T }{}\nvar g = f.F\n",
	} {
		file, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	faults, err := upwardUses(fset, files, nil)
	want := []string{
		"jsonrpc.go:2:17 uses T, which mcp.go declares",
		"jsonrpc.go:3:11 uses F, which mcp.go declares",
		"mcp.go:3:16 uses later, which session.go declares",
		"session.go:2:41 uses other, which stdio_unix.go declares",
	}
	if err != nil || !slices.Equal(faults, want) {
		t.Errorf("found %q, %v", faults, err)
	}
}

// TestHouseImports checks that the guests stay in their rooms, that nothing
// but the standard library is reachable from code that is not a test, and that
// go.mod requires one module, for tests.
func TestHouseImports(t *testing.T) {
	files, _ := houseFiles(t)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			for guest, hosts := range guests {
				if (path == guest || strings.HasPrefix(path, guest+"/")) && !slices.Contains(hosts, roomOf(name)) {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
	}
	const notStandard = "{{if not .Standard}}{{.ImportPath}}{{end}}"
	if deps := strings.Fields(goTool(t, ".", nil, "list", "-deps", "-f", notStandard, ".")); !slices.Equal(deps, []string{"mcpkit/mcp"}) {
		t.Errorf("the package needs %v", deps)
	}
	for _, path := range strings.Fields(goTool(t, ".", nil, "list", "-deps", "-f", notStandard, "./...")) {
		if path != "mcpkit/mcp" && !strings.HasPrefix(path, "mcpkit/mcp/") {
			t.Errorf("%s is reachable from code that is not a test", path)
		}
	}
	var mod struct {
		Module    struct{ Path string }
		Go        string
		Toolchain string
		Require   []struct{ Path, Version string }
		Replace   []any
	}
	if err := json.Unmarshal([]byte(goTool(t, ".", nil, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(mod); got != "{{mcpkit/mcp} 1.24.0  [{golang.org/x/tools v0.42.0}] []}" {
		t.Errorf("go.mod: %s", got)
	}
}

// parseModule returns every Go file of the module that is not a test.
func parseModule(t *testing.T, fset *token.FileSet) (files []*ast.File) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".":
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || d.Name()[0] == '.' || d.Name() == "testdata" {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			files = append(files, file)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestHouseFunctionsFit keeps functions to what a reader can hold.
func TestHouseFunctionsFit(t *testing.T) {
	const most = 90
	fset := token.NewFileSet()
	for _, file := range parseModule(t, fset) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				start, end := fset.Position(n.Pos()), fset.Position(n.End())
				if lines := end.Line - start.Line + 1; lines > most {
					t.Errorf("%s: a function of %d lines", start, lines)
				}
			}
			return true
		})
	}
}

// TestHouseSerial keeps tests from running side by side: what a test leaves
// behind could be anyone's then. Subtests may, within their test.
func TestHouseSerial(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "Parallel" {
					t.Errorf("%s: %s calls Parallel outside a function literal, that is not in a subtest", name, f.Name.Name)
				}
				_, literal := n.(*ast.FuncLit)
				return !literal
			})
		}
	}
}

// TestHouseVersions checks that versions are compared in the table of mcp.go
// and nowhere else: what differs by revision is looked up there, and an
// unknown version is never taken for a newer one.
func TestHouseVersions(t *testing.T) {
	files, _ := houseFiles(t)
	fset := token.NewFileSet()
	for _, name := range files {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if name != "mcp.go" {
			for _, fault := range versionUses(fset, file) {
				t.Error(fault)
			}
		}
	}
}

var (
	versionLiteral = regexp.MustCompile("^[\"`]\\d{4}-\\d\\d-\\d\\d[\"`]$")
	versionName    = regexp.MustCompile(`^(Version2\d{7}|LatestVersion|version|ProtocolVersion)$`)
)

// versionUses returns where a file writes a version out, or compares one.
func versionUses(fset *token.FileSet, file *ast.File) (faults []string) {
	isVersion := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			return versionName.MatchString(e.Sel.Name)
		case *ast.Ident:
			return strings.HasPrefix(e.Name, "Version2") || e.Name == "LatestVersion"
		}
		return false
	}
	fault := func(n ast.Node, what string) { faults = append(faults, fset.Position(n.Pos()).String()+": "+what) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if versionLiteral.MatchString(n.Value) {
				fault(n, "the version "+n.Value)
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, isVersion) {
				fault(n, "a case for a version")
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ || n.Op == token.LSS || n.Op == token.GTR || n.Op == token.LEQ || n.Op == token.GEQ {
				other, _ := n.Y.(*ast.Ident)
				if (isVersion(n.X) || isVersion(n.Y)) && (other == nil || other.Name != "nil") {
					fault(n, "a version is compared")
				}
			}
		}
		return true
	})
	return faults
}

func TestHouseVersionsFound(t *testing.T) {
	const src = `package mcp
var a = "2025-06-18"
var b = r.version < other
var c = x == LatestVersion
var d = v.version != nil
func e(s string) {
	switch s {
	case Version20250618:
	}
	f(Version20250618, r.version)
	_ = p.ProtocolVersion >= s
}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "server.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`server.go:2:9: the version "2025-06-18"`, "server.go:3:9: a version is compared", "server.go:4:9: a version is compared",
		"server.go:8:2: a case for a version", "server.go:11:6: a version is compared",
	}
	if got := versionUses(fset, file); !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}

// TestHouseHoldsNoPlace checks that no file of the project tells where it was
// written: the name of this machine, or the path of this folder.
func TestHouseHoldsNoPlace(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	places := []string{here, filepath.Join(filepath.Dir(here), "shared")}
	if host, err := os.Hostname(); err == nil && len(host) > 5 && host != "localhost" {
		places = append(places, host)
	}
	err = fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" || d.Name() == "node_modules" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // of a second work tree
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, ".test") {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, place := range places {
			if strings.Contains(string(text), place) {
				t.Errorf("%s names %s", name, place)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHouseDocumented checks that every exported name has a comment: types,
// functions, methods, variables, constants (one for the group will do) and
// the fields of options. With -v it prints how many names there are.
func TestHouseDocumented(t *testing.T) {
	fset := token.NewFileSet()
	names, methods := map[string]bool{}, map[string]bool{}
	for _, file := range parseModule(t, fset) {
		if file.Name.Name != "mcp" {
			continue // a program
		}
		for _, decl := range file.Decls {
			for name, documented := range exportedNames(decl) {
				if !documented {
					t.Errorf("%s: %s has no comment", fset.Position(decl.Pos()), name)
				}
				if strings.Contains(name, ".") {
					methods[name] = true
				} else {
					names[name] = true
				}
			}
		}
	}
	t.Logf("%d exported names, and %d exported methods and fields of options", len(names), len(methods))
}

// exportedNames returns the exported names of a declaration, and whether they
// have a comment. A method or field is named after its type, with a dot.
func exportedNames(decl ast.Decl) map[string]bool {
	names := map[string]bool{}
	add := func(prefix string, idents []*ast.Ident, comments ...*ast.CommentGroup) {
		documented := slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" })
		for _, ident := range idents {
			if ident.IsExported() {
				names[prefix+ident.Name] = documented
			}
		}
	}
	if f, ok := decl.(*ast.FuncDecl); ok {
		receiver := ""
		if f.Recv != nil {
			if receiver = receiverName(f.Recv.List[0].Type); !ast.IsExported(receiver) {
				return nil
			}
			receiver += "."
		}
		add(receiver, []*ast.Ident{f.Name}, f.Doc)
		return names
	}
	group := decl.(*ast.GenDecl)
	for _, spec := range group.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			add("", spec.Names, spec.Doc, spec.Comment, group.Doc)
		case *ast.TypeSpec:
			add("", []*ast.Ident{spec.Name}, spec.Doc, group.Doc)
			var members *ast.FieldList
			switch typ := spec.Type.(type) {
			case *ast.InterfaceType:
				members = typ.Methods
			case *ast.StructType:
				if strings.HasSuffix(spec.Name.Name, "Options") {
					members = typ.Fields
				}
			}
			if members == nil || !spec.Name.IsExported() {
				continue
			}
			for _, m := range members.List {
				add(spec.Name.Name+".", m.Names, m.Doc, m.Comment)
			}
		}
	}
	return names
}

// receiverName returns the name of a method's type.
func receiverName(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiverName(typ.X)
	case *ast.IndexExpr:
		return receiverName(typ.X)
	case *ast.IndexListExpr:
		return receiverName(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return ""
}

func TestHouseDocumentedFound(t *testing.T) {
	const src = `package mcp
func A() {}
// B is.
func B() {}
func (t *T[K]) C() {}
func (t T[K]) d() {}
func (x hidden) E() {}
// F are.
const (
	F = 1
	G = 2
)
var (
	H = 1 // H is.
	I = 2
)
type T[K any] struct{ Field int }
// An Options is.
type Options struct {
	X int // X is.
	Y int
	z int
}
// An Interface is.
type Interface interface {
	M()
	// N is.
	N()
	error
}
//go:generate nothing
type Directive int
`
	file, err := parser.ParseFile(token.NewFileSet(), "mcp.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, decl := range file.Decls {
		for name, documented := range exportedNames(decl) {
			all[name] = documented
		}
	}
	const want = "map[A:false B:true Directive:false F:true G:true H:true I:false Interface:true Interface.M:false Interface.N:true Options:true Options.X:true Options.Y:false T:false T.C:false]"
	if got := fmt.Sprint(all); got != want {
		t.Errorf("found %s\nwant  %s", got, want)
	}
}

// testPatience is for what must happen, on a busy machine.
const testPatience = 20 * time.Second

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testPatience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

// streamOver returns the connection that reads input, with what it writes.
func streamOver(t *testing.T, input io.Reader, maxLine int) (Conn, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	conn, err := (&Stream{Reader: input, Writer: out, MaxLine: maxLine}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn, out
}

// readFrames returns all frames of a connection; refused ones as "!" and the code.
func readFrames(t *testing.T, c Conn) []string {
	t.Helper()
	var frames []string
	for {
		frame, err := c.Read(t.Context())
		var bad *Error
		switch {
		case errors.As(err, &bad):
			frames = append(frames, "!"+strconv.Itoa(bad.Code))
		case err == io.EOF:
			return frames
		case err != nil:
			t.Fatal(err)
		default:
			frames = append(frames, string(frame))
		}
	}
}
