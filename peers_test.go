//go:build unix

package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Real peers: SDKs and servers that others wrote, over stdio, in every era
// that they have. They are installed outside the tree at the versions that
// testdata/peers pins, and only when they are not there yet.

// npmBefore holds what the pinned npm packages depend on to the versions that
// were out on that day.
const npmBefore = "2026-11-25"

// A leg is one peer, held to one revision ("auto": it finds out by itself).
type leg struct{ peer, version string }

// clientLegs are the clients that talk to our demo server. The TypeScript SDK
// v1 asks for 2025-11-25 and cannot be told otherwise.
var clientLegs = []leg{
	{"ts1", Version20251125},
	{"ts2", "auto"}, {"ts2", Version20260728}, {"ts2", Version20251125}, {"ts2", Version20250618}, {"ts2", Version20250326}, {"ts2", Version20241105},
	{"gosdk", Version20260728}, {"gosdk", Version20251125}, {"gosdk", Version20250618}, {"gosdk", Version20250326}, {"gosdk", Version20241105},
	{"mcpgo", Version20260728}, {"mcpgo", Version20251125}, {"mcpgo", Version20250618}, {"mcpgo", Version20250326}, {"mcpgo", Version20241105},
}

func (l leg) revision() *revision {
	if l.version == "auto" {
		return rev20260728
	}
	return revisionOf(l.version)
}

// A step is what every peer client does with a server of ours, and what it has
// to see; see includes for how the two are compared.
type step struct{ name, want string }

// demo are the steps with mcp demo, in order.
func (l leg) demo() []step {
	rev := l.revision()
	structured := `{"sum":42}`
	elicit := `{"message":"Who?","fields":["agree","name"],"text":"accept {\"agree\":true,\"name\":\"Ada\"}"}`
	if !rev.atLeast(rev20250618) { // neither is in those revisions
		structured, elicit = `null`, `{"fields":null,"text":"elicit"}`
	}
	ping := `"pong"`
	if rev.modern && l.peer == "ts2" { // which knows that there is no ping
		ping = `"METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION"`
	}
	return []step{
		{"connect", `{"version":"` + rev.version + `","server":"demo"}`},
		{"list", `{"tools":["echo","add","countdown","wait","ask","sample","roots","fail","panic","log","touch"],
			"resources":["demo://readme","demo://logo"],"templates":["demo://users/{id}/profile"],"prompts":["greet","review"]}`},
		{"call", `{"echo":"Grüße <b>&</b> 世界 \u2028","sum":"{\"sum\":42}","structured":` + structured + `,"failed":true,"panic":-32603}`},
		{"read", `{"readme":"# demo","logo":"89504e470d0a1a0a","user":"user 42","missing":-32602}`},
		{"prompt", `{"greet":"Greet Ada in a formal way","embedded":"demo://readme"}`},
		{"progress", `{"seen":[1,2],"text":"lift-off"}`}, // TypeScript loses a notice that comes with the answer
		{"cancel", `{"outcome":"cancelled","after":"still here"}`},
		{"elicit", elicit},
		{"sample", `{"text":"model heard: say hi"}`},
		{"roots", `{"text":"file:///peer/one\nfile:///peer/two"}`},
		{"complete", `{"style":"formal friendly funny","id":"24 240 241","most":100}`},
		{"log", `{"seen":"error {\"msg\":\"loud enough\"}"}`},
		{"updates", `{"seen":"demo://readme","after":"still here"}`},
		{"ping", ping},
		{"close", `null`},
	}
}

// wide are the steps with mcp demo when its lists have pages of 4, in order.
func (l leg) wide() []step {
	rev := l.revision()
	first, several := "echo add primes content", "true"
	if l.peer == "ts2" { // which puts the pages together by itself
		several = "false"
	}
	structured, asks, dialects := `"primes":null,"requests":null`, `"elicit"`, ""
	kinds := `"text","image","resource"`
	if rev.atLeast(rev20250326) {
		kinds += `,"audio"`
	}
	if rev.atLeast(rev20250618) {
		structured, asks, dialects = `"primes":null,"requests":{"tools/call":2}`, `"accept"`, "Austrian Low Swiss"
		kinds += `,"resource_link"`
	}
	once, rounds, url, agent := asks, asks, `"unknown tool: pay"`, `"sampling"`
	if rev.atLeast(rev20250618) {
		once, rounds = `"accept {\"colour\":\"any colour\"}; accept {\"animal\":\"any animal\"}"`, `"seat 1 was booked"`
	}
	if rev.atLeast(rev20251125) {
		url, agent = `"7 coins were paid","message":"Please pay 7 coins","url":"https://pay.example/order?coins=7"`, `"it is 42"`
	}
	if rev.modern {
		structured = `"primes":[2,3,5,7],"requests":{"tools/call":2}`
	}
	return []step{
		{"connect", `{"version":"` + rev.version + `","server":"demo"}`},
		{"pages", `{"first":"` + first + `","several":` + several + `,"bad":-32602,"tools":["echo","bonus","agent","roots"],
			"resources":["demo://readme","demo://logo","demo://clock"],"prompts":["greet","translate","review"]}`},
		{"structured", `{"text":"[2,3,5,7]",` + structured + `}`},
		{"content", `[` + kinds + `]`},
		{"context", `{"with":"` + dialects + `","without":""}`},
		{"changes", `{"tools":true,"prompts":true,"resources":true,"bonus":true}`},
		{"url", `{"text":` + url + `}`},
		{"once", `{"text":` + once + `}`},
		{"rounds", `{"text":` + rounds + `}`},
		{"agent", `{"text":` + agent + `}`},
		{"close", `null`},
	}
}

// TestPeersAsClients lets clients that nobody here wrote talk to our demo
// server.
func TestPeersAsClients(t *testing.T) {
	shows(t, "stdio.framing", "stdio.stdout.clean", "cancel.receiver.no-response", "stdio.cancel.silent", "patterns.no-server-requests",
		"progress.increasing", "progress.stop", "base.resulttype.present", "base.resulttype.value", "lifecycle.version.server-echo",
		"version.dual.initialize", "version.dual.meta")
	p := installPeers(t)
	p.demo = filepath.Join(t.TempDir(), "mcp")
	goBuild(t, "cmd/mcp", p.demo)
	for _, l := range clientLegs {
		t.Run(l.peer+"/"+l.version, func(t *testing.T) {
			t.Parallel()
			p.runClient(t, l, "demo", l.demo(), 3, p.demo, "demo") // ask, sample, roots
		})
		t.Run(l.peer+"/"+l.version+"/wide", func(t *testing.T) {
			t.Parallel()
			p.runClient(t, l, "wide", l.wide(), 6, p.demo, "demo", "-page", "4") // pay, survey, book twice, agent twice
		})
	}
}

// An inspectorLeg is what the command line of the inspector asks of our demo
// server, in a process of its own, and what it then prints.
type inspectorLeg struct {
	name, want string
	args       []string
	exit       int
}

var inspectorLegs = []inspectorLeg{
	{"initialize", `{"serverInfo":{"name":"demo"}}`, []string{"--method", "initialize"}, 0},
	{"tools", `{"tools":[{"name":"echo"},{"name":"add"},{"name":"agent"}]}`, []string{"--method", "tools/list", "--strict"}, 0},
	{"call", `{"structuredContent":{"sum":42},"content":[{"type":"text","text":"42"}]}`,
		[]string{"--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=40"}, 0},
	{"fail", `{"isError":true,"content":[{"text":"this tool always fails"}]}`, []string{"--method", "tools/call", "--tool-name", "fail"}, 5},
	{"resources", `{"resources":[{"uri":"demo://readme"},{"uri":"demo://logo","mimeType":"image/png"}]}`, []string{"--method", "resources/list"}, 0},
	{"templates", `{"resourceTemplates":[{"uriTemplate":"demo://users/{id}/profile"}]}`, []string{"--method", "resources/templates/list"}, 0},
	{"read", `{"contents":[{"uri":"demo://users/42/profile","text":"42"}]}`, []string{"--method", "resources/read", "--uri", "demo://users/42/profile"}, 0},
	{"prompts", `{"prompts":[{"name":"greet","arguments":[{"name":"name","required":true}]}]}`, []string{"--method", "prompts/list"}, 0},
	{"get", `{"messages":[{"role":"user","content":{"text":"Greet Ada in a formal way"}}]}`,
		[]string{"--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada", "style=formal"}, 0},
	{"level", `{}`, []string{"--method", "logging/setLevel", "--log-level", "warning"}, 0},
}

// TestPeersInspector has the inspector's command line use our demo server.
func TestPeersInspector(t *testing.T) {
	shows(t, "stdio.stdout.clean", "lifecycle.version.server-echo", "version.dual.meta")
	p := installPeers(t)
	p.demo = filepath.Join(t.TempDir(), "mcp")
	goBuild(t, "cmd/mcp", p.demo)
	for _, l := range inspectorLegs {
		for era, rev := range map[string]*revision{"legacy": rev20251125, "modern": rev20260728} {
			if l.name == "level" && rev.modern {
				continue // logging/setLevel is not there
			}
			t.Run(l.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				tap := p.newTap(t)
				l.run(t, p, era, append([]string{"--"}, tap.command(p.demo, "demo")...)...)
				tap.checkServer(rev, 0)
				if t.Failed() {
					tap.log()
				}
			})
		}
	}
}

// run has the inspector ask a server, at a command or URL.
func (l inspectorLeg) run(t *testing.T, p *peers, era string, server ...string) {
	cli := filepath.Join(p.npm, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	args := append([]string{cli, "--cli", "--quiet", "--protocol-era", era}, l.args...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append(args, server...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // where it keeps a catalog
	stdout, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != l.exit {
		t.Errorf("%v, want exit status %d", err, l.exit)
	}
	var got, want any
	if err := json.Unmarshal([]byte(l.want), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stdout, &got); err != nil || !includes(got, want) {
		t.Errorf("got %s, %v, want %s", stdout, err, l.want)
	}
	if t.Failed() {
		t.Logf("stderr: %s", stderr.Bytes())
	}
}

// A server that pings its client, which mcp demo does not.
var _ = addMode("peers-nap", func() {
	s := NewServer(Implementation{Name: "nap", Version: "1.0.0"}, &ServerOptions{KeepAlive: 500 * time.Millisecond})
	AddTool(s, Tool{Name: "nap"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		select {
		case <-time.After(1300 * time.Millisecond):
			return "rested", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	if err := s.Run(context.Background(), Stdio()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
})

// TestPeersPinged has our server ping clients that nobody here wrote.
func TestPeersPinged(t *testing.T) {
	shows(t, "ping.periodic", "ping.configurable")
	p := installPeers(t)
	for _, l := range []leg{{"ts1", Version20251125}, {"ts2", Version20251125}, {"ts2", Version20241105}, {"gosdk", Version20251125}, {"mcpgo", Version20251125}} {
		t.Run(l.peer+"/"+l.version, func(t *testing.T) {
			t.Parallel()
			self := childCommand("peers-nap")
			steps := []step{{"connect", `{"version":"` + l.version + `","server":"nap"}`}, {"nap", `{"text":"rested"}`}, {"close", `null`}}
			tap := p.runClient(t, l, "nap", steps, 0, "env", self.Env[0], self.Path)
			for _, c := range tap.connections() {
				pinged, answered := 0, 0
				for _, m := range c[1] {
					if m.Method == methodPing {
						pinged++
					}
				}
				for _, m := range c[0] {
					if m.Method == "" && m.Error == nil {
						answered++
					}
				}
				if answered == 0 || answered < pinged-1 { // the last may come too late
					t.Errorf("%d pings, %d answers", pinged, answered)
				}
			}
		})
	}
}

// TestPeersAsServers lets our client talk to servers that nobody here wrote.
func TestPeersAsServers(t *testing.T) {
	shows(t, "stdio.stdin.clean", "stdio.compat.probe", "stdio.compat.discover-result", "stdio.compat.fallback-error", "stdio.cancel.notify",
		"patterns.no-client-responses", "patterns.client-notifications", "mrtr.client.fulfil", "mrtr.client.new-id")
	p := installPeers(t)
	for _, l := range serverLegs {
		t.Run(l.peer+"/"+l.version, func(t *testing.T) {
			t.Parallel()
			p.converse(t, l.leg, l.settles, func(dir string) (Transport, *tap) {
				tap, server := p.newTap(t), l.command(p, dir)
				args := tap.command(server.Args...)
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Env = server.Env
				return &Command{Cmd: cmd}, tap
			}, l.talk)
		})
	}
}

// peers is where the installed peers and our demo server are.
type peers struct {
	npm  string // holds node_modules and the client programs
	goes string // the program testdata/peers/go
	demo string // our cmd/mcp

	published map[*revision]*wireSchema
}

func installPeers(t *testing.T) *peers {
	if testing.Short() {
		t.Skip("-short: the peers are large")
	}
	dir := t.TempDir()
	p := &peers{goes: filepath.Join(dir, "peers"), published: publishedSchemas(t)}
	goBuild(t, "testdata/peers/go", p.goes)
	p.npm = installNPM(t, dir)
	return p
}

// offline matches what npm and go say when the registry cannot be reached.
var offline = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|dial tcp|no such host|i/o timeout|TLS handshake timeout|module lookup disabled`)

// install runs a command that may fetch packages. Only when that fails for
// want of the registry is the test skipped.
func install(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	if offline.Match(out) {
		t.Skipf("NO REAL PEER WAS TRIED: the registry is unreachable and the peers are not in the cache: %s %q: %v\n%s", name, args, err, out)
	}
	t.Fatalf("%s %q: %v\n%s", name, args, err, out)
}

func goBuild(t *testing.T, dir, out string) {
	t.Helper()
	// Opened so that go test does not answer from its cache when it changes.
	if _, err := os.ReadDir(dir); err != nil {
		t.Fatal(err)
	}
	install(t, dir, filepath.Join(runtime.GOROOT(), "bin", "go"), "build", "-buildvcs=false", "-o", out, ".")
}

// installNPM makes a folder in dir with the client programs and the cached
// node_modules.
func installNPM(t *testing.T, dir string) string {
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to have Node.js: ", err)
		}
		t.Skip("NO REAL PEER WAS TRIED: Node.js is not installed: ", err)
	}
	manifest, err := os.ReadFile("testdata/peers/npm/package.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "mcpkit-peers")
	ready := filepath.Join(cache, fmt.Sprintf("%.8x", sha256.Sum256(append(manifest, npmBefore...))))
	if _, err := os.Stat(ready); err != nil {
		if err := os.MkdirAll(cache, 0o755); err != nil {
			t.Fatal(err)
		}
		fresh, err := os.MkdirTemp(cache, "install-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(fresh)
		if err := os.WriteFile(filepath.Join(fresh, "package.json"), manifest, 0o644); err != nil {
			t.Fatal(err)
		}
		install(t, fresh, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--before", npmBefore,
			"--fetch-retries", "1", "--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "2000")
		// Another run of this test may have been faster.
		if err := os.Rename(fresh, ready); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	npm := filepath.Join(dir, "npm")
	if err := os.CopyFS(npm, os.DirFS("testdata/peers/npm")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(ready, "node_modules"), filepath.Join(npm, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return npm
}

// runClient lets a peer's client talk to a server of ours and compares what it
// saw, and what went over the wire, with what it should be.
func (p *peers) runClient(t *testing.T, l leg, conversation string, steps []step, rounds int, server ...string) *tap {
	tap := p.newTap(t)
	p.runProgram(t, l, conversation, steps, tap.command(server...)...)
	tap.checkServer(l.revision(), rounds)
	if t.Failed() {
		tap.log()
	}
	return tap
}

// runProgram runs a peer's client with a command or URL and compares what it
// saw with what it should be.
func (p *peers) runProgram(t *testing.T, l leg, conversation string, steps []step, server ...string) {
	program := []string{p.goes, l.peer}
	if strings.HasPrefix(l.peer, "ts") {
		program = []string{"node", filepath.Join(p.npm, l.peer+".mjs")}
	}
	args := append(append(program, conversation, l.version), server...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	lines := bytes.Split(bytes.TrimSpace(stdout), []byte("\n"))
	for i, want := range steps {
		if i >= len(lines) {
			t.Errorf("%s: no such step: the program ended", want.name)
			continue
		}
		var got struct {
			Step   string
			OK     bool
			Detail any
		}
		if err := json.Unmarshal(lines[i], &got); err != nil {
			t.Errorf("%s: %v: %s", want.name, err, lines[i])
			continue
		}
		var detail any
		if err := json.Unmarshal([]byte(want.want), &detail); err != nil {
			t.Fatal(err)
		}
		if got.Step != want.name || !got.OK || !includes(got.Detail, detail) {
			t.Errorf("got  %s\nwant %s %s", lines[i], want.name, want.want)
		}
	}
	if err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("stderr: %s", stderr.Bytes())
	}
}

// includes reports whether got has all that want has: of an object the
// members, of an array the elements in any order, of a string a part, and of
// anything else the same value. An absent member is null.
func includes(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && includes(object[name], value)
		}
		return ok
	case []any:
		array, ok := got.([]any)
		for _, value := range want {
			found := false
			for _, element := range array {
				found = found || includes(element, value)
			}
			ok = ok && found
		}
		return ok
	case string:
		text, ok := got.(string)
		return ok && strings.Contains(text, want)
	default:
		return got == want
	}
}

// serverLegs are the servers that our client talks to. The npm servers know
// nothing of 2026-07-28, so "auto" finds that out from their answer to the
// probe; the last two speak it: the demo server once more, on other SDKs.
var serverLegs = []struct {
	leg
	settles *revision
	command func(p *peers, dir string) *exec.Cmd
	talk    func(*conversation)
}{
	{leg{"everything", "auto"}, rev20251125, everythingServer, (*conversation).everything},
	{leg{"everything", Version20251125}, rev20251125, everythingServer, (*conversation).everything},
	{leg{"everything", Version20250618}, rev20250618, everythingServer, (*conversation).everything},
	{leg{"everything", Version20250326}, rev20250326, everythingServer, (*conversation).everything},
	{leg{"everything", Version20241105}, rev20241105, everythingServer, (*conversation).everything},
	{leg{"filesystem", "auto"}, rev20251125, filesystemServer, (*conversation).filesystem},
	{leg{"memory", "auto"}, rev20251125, memoryServer, (*conversation).memory},
	{leg{"gosdk", "auto"}, rev20260728, goServer("gosdk"), (*conversation).foreign},
	{leg{"gosdk", Version20251125}, rev20251125, goServer("gosdk", "-ping"), (*conversation).foreign},
	{leg{"mcpgo", "auto"}, rev20260728, goServer("mcpgo"), (*conversation).foreign},
	{leg{"mcpgo", Version20251125}, rev20251125, goServer("mcpgo"), (*conversation).foreign},
	{leg{"ts2", "auto"}, rev20260728, ts2Server, (*conversation).foreign},
	{leg{"ts2", Version20260728}, rev20260728, ts2Server, (*conversation).foreign},
	{leg{"ts2", Version20251125}, rev20251125, ts2Server, (*conversation).foreign},
}

func (p *peers) script(server string) string {
	return filepath.Join(p.npm, "node_modules", "@modelcontextprotocol", "server-"+server, "dist", "index.js")
}

func everythingServer(p *peers, _ string) *exec.Cmd {
	return exec.Command("node", p.script("everything"))
}

func filesystemServer(p *peers, dir string) *exec.Cmd {
	return exec.Command("node", p.script("filesystem"), dir)
}

func goServer(args ...string) func(*peers, string) *exec.Cmd {
	return func(p *peers, _ string) *exec.Cmd { return exec.Command(p.goes, append([]string{"serve"}, args...)...) }
}

func ts2Server(p *peers, _ string) *exec.Cmd {
	return exec.Command("node", filepath.Join(p.npm, "ts2-server.mjs"))
}

func memoryServer(p *peers, dir string) *exec.Cmd {
	cmd := exec.Command("node", p.script("memory"))
	cmd.Env = []string{"MEMORY_FILE_PATH=" + filepath.Join(dir, "memory.jsonl")}
	return cmd
}

// A conversation is our client's with one foreign server.
type conversation struct {
	t     *testing.T
	cs    *ClientSession
	rev   *revision // agreed on
	peer  string
	tap   *tap
	http  bool
	quiet bool   // the server cannot ask
	dir   string // a folder for the server; its only root

	cancelled int          // calls given up and subscriptions ended
	noticed   chan string  // all notifications
	logged    chan string  // log messages
	opened    chan string  // pages for the user
	listed    atomic.Int64 // how often the roots were asked for
}

// converse starts a server, which gets a folder, talks to it and checks what our
// client wrote.
func (p *peers) converse(t *testing.T, l leg, settles *revision, start func(dir string) (Transport, *tap), talk func(*conversation)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	server, tap := start(dir)
	c := &conversation{t: t, rev: settles, peer: l.peer, tap: tap, http: tap.http != nil, dir: dir, noticed: make(chan string, 1000), logged: make(chan string, 1000), opened: make(chan string, 10)}
	options := &ClientOptions{
		ProbeTimeout: 30 * time.Second, // Node.js may be slow to start beside the other legs
		Capabilities: &ClientCapabilities{
			Elicitation: &ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
			Sampling:    &SamplingCapability{},
			Roots:       &RootsCapability{ListChanged: true},
		},
		Notify: func(_ context.Context, method string, params json.RawMessage) {
			c.noticed <- method + " " + string(params)
		},
		Log: func(_ context.Context, p *LogParams) { c.logged <- fmt.Sprintf("%s %s", p.Level, p.Data) },
		Elicit: func(_ context.Context, q *ElicitParams) (*ElicitResult, error) {
			if q.Mode == "url" {
				c.opened <- q.URL
				return &ElicitResult{Action: "accept"}, nil
			}
			return &ElicitResult{Action: "accept", Content: json.RawMessage(`{"name":"Ada","agree":true}`)}, nil
		},
		Sample: func(_ context.Context, q *CreateMessageParams) (*CreateMessageResult, error) {
			answer := Content{Type: "text", Text: "model heard: " + q.Messages[0].Content[0].Text}
			return &CreateMessageResult{Role: "assistant", Content: []Content{answer}, Model: "our-model", StopReason: "endTurn"}, nil
		},
		Roots: func(context.Context) ([]Root, error) {
			c.listed.Add(1)
			return []Root{{URI: "file://" + dir, Name: "one"}}, nil
		},
	}
	if l.version != "auto" {
		options.Versions = []string{l.version}
	}
	cs, err := NewClient(Implementation{Name: "ours", Version: "1.0.0"}, options).Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	if cs.Server().ProtocolVersion != settles.version {
		t.Errorf("agreed on %s, want %s", cs.Server().ProtocolVersion, settles.version)
	}
	c.cs = cs
	talk(c)
	if err := cs.Close(); err != nil {
		t.Error("close:", err)
	}
	if tap.http != nil {
		tap.http.Close() // waits for what is under way
	}
	tap.checkClient(settles, l.version == "auto" || settles.modern, c.cancelled)
	if t.Failed() {
		tap.log()
	}
}

func (c *conversation) everything() {
	ask := []string{"trigger-sampling-request", "get-roots-list"}
	if c.rev.atLeast(rev20250618) {
		ask = append(ask, "trigger-elicitation-request")
	}
	c.lists("tools", append(ask, "echo", "get-sum", "trigger-long-running-operation")...)
	c.lists("resources", "demo://resource/static/document/features.md")
	c.lists("templates", "demo://resource/dynamic/text/{resourceId}")
	c.lists("prompts", "simple-prompt", "args-prompt", "resource-prompt")
	c.says("echo", `{"message":"Grüße <b>&</b> 世界"}`, "Echo: Grüße <b>&</b> 世界")
	c.says("get-sum", `{"a":2,"b":40}`, "42")
	c.fails("get-sum", `{"a":"two","b":40}`)
	c.says("get-tiny-image", `{}`, "89504e47")
	c.says("get-resource-links", `{"count":2}`, "demo://resource/dynamic/")
	c.says("get-resource-reference", `{"resourceType":"Text","resourceId":1}`, "demo://resource/dynamic/text/1")
	if c.rev.atLeast(rev20250618) {
		type weather struct {
			Temperature float64 `json:"temperature"`
			Conditions  string  `json:"conditions"`
			Humidity    float64 `json:"humidity"`
		}
		got, err := CallTool[weather](c.ctx(), c.cs, "get-structured-content", map[string]string{"location": "Chicago"})
		if err != nil || got.Temperature != 36 || got.Humidity != 82 {
			c.t.Errorf("structured: %+v, %v", got, err)
		}
	}
	c.reads("demo://resource/static/document/features.md", "tool")
	c.reads("demo://resource/dynamic/text/7", "7")
	c.reads("demo://resource/dynamic/blob/7", "7")
	c.prompts("args-prompt", map[string]string{"city": "Paris", "state": "TX"}, "Paris")
	c.prompts("resource-prompt", map[string]string{"resourceType": "Text", "resourceId": "1"}, "demo://resource/dynamic/text/1")
	c.counts("trigger-long-running-operation", `{"duration":0.2,"steps":4}`, 1, 2, 3, 4)
	c.cancels("trigger-long-running-operation", `{"duration":30,"steps":1}`)
	c.says("echo", `{"message":"still here"}`, "still here")
	if c.rev.atLeast(rev20250618) {
		c.says("trigger-elicitation-request", `{}`, "Name: Ada")
	}
	c.says("trigger-sampling-request", `{"prompt":"say hi","maxTokens":10}`, "model heard: ", "say hi")
	c.says("get-roots-list", `{}`, "file://"+c.dir)
	c.everythingTold()
}

// everythingTold is what that server tells beside its answers, and URLs.
func (c *conversation) everythingTold() {
	department := CompleteParams{Ref: CompleteReference{Type: "ref/prompt", Name: "completable-prompt"}, Argument: CompleteArgument{Name: "department", Value: "S"}}
	c.completes(department, "Sales", "Support")
	name := CompleteParams{Ref: department.Ref, Argument: CompleteArgument{Name: "name", Value: "D"}, Context: &CompleteContext{Arguments: map[string]string{"department": "Sales"}}}
	if c.rev.atLeast(rev20250618) {
		c.completes(name, "David")
	} else { // which has no context
		c.completes(name)
	}
	c.completes(CompleteParams{Ref: CompleteReference{Type: "ref/resource", URI: "demo://resource/dynamic/text/{resourceId}"}, Argument: CompleteArgument{Name: "resourceId", Value: "7"}}, "7")
	c.pings()
	if err := c.cs.SetLogLevel(c.ctx(), "debug"); err != nil {
		c.t.Errorf("set the level: %v", err)
	}
	const uri = "demo://resource/dynamic/text/1"
	c.watches(SubscriptionFilter{ResourceSubscriptions: []string{uri}, ResourcesListChanged: true},
		cause{"toggle-subscriber-updates", `{}`, Change{notifyResourceUpdated, uri}},
		cause{"gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain,hello"}`, Change{Method: notifyResourcesChanged}})
	c.heard("a log message", c.logged, "Received Unsubscribe Resource request: "+uri)
	before := c.listed.Load()
	if err := c.cs.RootsChanged(c.ctx()); err != nil {
		c.t.Errorf("roots have changed: %v", err)
	}
	c.heard("a log message", c.logged, "Roots updated: 1 root(s)")
	if c.listed.Load() == before {
		c.t.Error("the server did not list the roots again")
	}
	if c.rev.atLeast(rev20251125) {
		c.says("trigger-url-elicitation", `{"url":"https://example.com/a?b=c&d"}`, "User completed", "https://example.com/a?b=c&d")
		c.heard("a page", c.opened, "https://example.com/a?b=c&d")
		args := json.RawMessage(`{"url":"https://example.com/b","errorPath":true}`)
		// That server asks for a page first and never says that it is done with.
		short, cancel := context.WithTimeout(c.ctx(), 500*time.Millisecond)
		defer cancel()
		if _, err := c.cs.CallTool(short, "trigger-url-elicitation", args); !errors.Is(err, context.DeadlineExceeded) {
			c.t.Errorf("a page that must be opened first: %v", err)
		}
		c.heard("a page", c.opened, "https://modelcontextprotocol.io")
		c.says("trigger-url-elicitation", string(args), "User completed", "https://example.com/b")
	}
}

func (c *conversation) filesystem() {
	file := filepath.Join(c.dir, "note.txt")
	args := func(content string) string {
		b, _ := json.Marshal(map[string]string{"path": file, "content": content})
		return string(b)
	}
	c.lists("tools", "write_file", "read_text_file", "list_directory")
	c.says("write_file", args("Grüße <b>&</b>\n"), "wrote")
	c.says("read_text_file", args(""), "Grüße <b>&</b>")
	c.says("list_allowed_directories", `{}`, c.dir)
	c.fails("read_text_file", `{"path":"/etc/hostname"}`)
	if b, err := os.ReadFile(file); string(b) != "Grüße <b>&</b>\n" {
		c.t.Errorf("the file holds %q, %v", b, err)
	}
}

func (c *conversation) memory() {
	c.lists("tools", "create_entities", "read_graph")
	c.lists("resources", "memory://knowledge-graph")
	c.says("create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`, "Ada")
	c.says("search_nodes", `{"query":"counts"}`, "person")
	c.reads("memory://knowledge-graph", "Ada")
}

func (c *conversation) foreign() {
	c.lists("tools", "echo", "add", "countdown", "wait", "ask", "sample", "roots", "fail")
	c.lists("resources", "demo://readme", "demo://logo")
	c.lists("templates", "demo://users/{id}/profile")
	c.lists("prompts", "greet", "review")
	c.says("echo", `{"text":"Grüße <b>&</b> 世界"}`, "Grüße <b>&</b> 世界")
	c.says("add", `{"a":2,"b":40}`, `{"sum":42}`)
	c.fails("fail", `{}`)
	_, err := c.cs.ReadResource(c.ctx(), "demo://no/such")
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != CodeInvalidParams && e.Code != CodeResourceNotFound {
		c.t.Errorf("an unknown resource: %v", err)
	}
	c.reads("demo://readme", "Read me.")
	c.reads("demo://logo", "89504e47")
	c.reads("demo://users/42/profile", "42")
	c.prompts("greet", map[string]string{"name": "Ada"}, "Ada")
	c.prompts("review", nil, "demo://readme")
	c.counts("countdown", `{"from":3,"delayMs":30}`, 1, 2)
	c.cancels("wait", `{}`)
	c.says("echo", `{"text":"still here"}`, "still here")
	if !c.quiet {
		c.asked()
	}
	c.completes(CompleteParams{Ref: CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: CompleteArgument{Name: "style", Value: "f"}}, "formal", "friendly")
	c.pings()
	c.logs("log", `{"level":"info","message":"too quiet"}`, `{"level":"error","message":"loud enough"}`, `error "loud enough"`)
	tools, readme := cause{"bonus", `{"have":true}`, Change{Method: notifyToolsChanged}}, cause{"touch", `{}`, Change{notifyResourceUpdated, "demo://readme"}}
	if c.peer == "mcpgo" && c.rev.modern && c.http { // where that SDK cannot send the other
		c.watches(SubscriptionFilter{ToolsListChanged: true}, tools)
	} else {
		c.watches(SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"demo://readme"}}, readme, tools)
	}
	c.lists("tools", "bonus-tool")
	if c.peer != "ts2" { // which refuses to send it
		c.lies()
	}
}

// asked calls tools that ask back.
func (c *conversation) asked() {
	c.says("ask", `{"question":"Who?"}`, "accept", "Ada")
	c.says("sample", `{"prompt":"say hi"}`, "model heard: say hi")
	c.says("roots", `{}`, "file://"+c.dir)
	if c.rev.atLeast(rev20251125) {
		c.says("pay", `{}`, "accept")
		c.heard("a page", c.opened, "https://pay.example/7")
	}
}

func (c *conversation) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	c.t.Cleanup(cancel)
	return ctx
}

// lists wants names to be among what the server lists.
func (c *conversation) lists(kind string, names ...string) {
	c.t.Helper()
	got := map[string]bool{}
	switch kind {
	case "tools":
		collect(c, got, c.cs.Tools(c.ctx()), func(v *Tool) string { return v.Name })
	case "resources":
		collect(c, got, c.cs.Resources(c.ctx()), func(v *Resource) string { return v.URI })
	case "templates":
		collect(c, got, c.cs.ResourceTemplates(c.ctx()), func(v *ResourceTemplate) string { return v.URITemplate })
	case "prompts":
		collect(c, got, c.cs.Prompts(c.ctx()), func(v *Prompt) string { return v.Name })
	}
	for _, name := range names {
		if !got[name] {
			c.t.Errorf("%s: no %s among %v", kind, name, got)
		}
	}
}

func collect[T any](c *conversation, names map[string]bool, list iter.Seq2[T, error], name func(T) string) {
	c.t.Helper()
	for v, err := range list {
		if err != nil {
			c.t.Errorf("list: %v", err)
			return
		}
		names[name(v)] = true
	}
}

// plain is what blocks of content say, binary data in hexadecimal.
func plain(blocks []Content) string {
	var b strings.Builder
	for _, block := range blocks {
		fmt.Fprintf(&b, "%s%s%x\n", block.Text, block.URI, block.Data)
		if block.Resource != nil {
			fmt.Fprintf(&b, "%s\n", block.Resource.URI)
		}
	}
	return b.String()
}

// says wants the answer of a tool to say all of want.
func (c *conversation) says(tool, args string, want ...string) {
	c.t.Helper()
	r, err := c.cs.CallTool(c.ctx(), tool, json.RawMessage(args))
	if err != nil || r.IsError {
		c.t.Errorf("%s: %+v, %v", tool, r, err)
		return
	}
	c.includes(tool, plain(r.Content), want...)
}

func (c *conversation) includes(what, text string, want ...string) {
	c.t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			c.t.Errorf("%s: %q is not in %q", what, part, text)
		}
	}
}

func (c *conversation) fails(tool, args string) {
	c.t.Helper()
	if r, err := c.cs.CallTool(c.ctx(), tool, json.RawMessage(args)); err != nil || !r.IsError {
		c.t.Errorf("%s %s: %+v, %v", tool, args, r, err)
	}
}

func (c *conversation) reads(uri, want string) {
	c.t.Helper()
	r, err := c.cs.ReadResource(c.ctx(), uri)
	if err != nil {
		c.t.Errorf("%s: %v", uri, err)
		return
	}
	text := r.Contents[0].Text
	if blob := r.Contents[0].Blob; blob != nil {
		text = fmt.Sprintf("%x %s", blob, blob)
	}
	c.includes(uri, text, want)
}

func (c *conversation) prompts(name string, args map[string]string, want string) {
	c.t.Helper()
	r, err := c.cs.GetPrompt(c.ctx(), name, args)
	if err != nil {
		c.t.Errorf("%s: %v", name, err)
		return
	}
	var text string
	for _, m := range r.Messages {
		text += plain([]Content{m.Content})
	}
	c.includes(name, text, want)
}

// counts wants a call to report progress, at least of these values.
func (c *conversation) counts(tool, args string, want ...float64) {
	c.t.Helper()
	var got []float64
	cs := c.cs.With(CallOptions{Progress: func(p ProgressParams) { got = append(got, p.Progress) }})
	if _, err := cs.CallTool(c.ctx(), tool, json.RawMessage(args)); err != nil {
		c.t.Errorf("%s: %v", tool, err)
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		c.t.Errorf("%s: progress %v, want %v", tool, got, want)
	}
}

// cancels gives up a call that goes on for ever.
func (c *conversation) cancels(tool, args string) {
	c.t.Helper()
	c.cancelled++
	ctx, cancel := context.WithCancel(c.ctx())
	time.AfterFunc(100*time.Millisecond, cancel)
	if r, err := c.cs.CallTool(ctx, tool, json.RawMessage(args)); !errors.Is(err, context.Canceled) {
		c.t.Errorf("%s: %+v, %v", tool, r, err)
	}
}

// heard wants to hear something, and after things that do not matter.
func (c *conversation) heard(what string, from chan string, want string) {
	c.t.Helper()
	for timeout := time.After(5 * time.Second); ; {
		select {
		case got := <-from:
			if strings.Contains(got, want) {
				return
			}
		case <-timeout:
			c.t.Errorf("%s: %s was not heard", what, want)
			return
		}
	}
}

// completes wants exactly these proposals.
func (c *conversation) completes(p CompleteParams, want ...string) {
	c.t.Helper()
	r, err := c.cs.Complete(c.ctx(), &p)
	if err != nil || !slices.Equal(r.Completion.Values, want) {
		c.t.Errorf("complete %+v: %+v, %v", p, r, err)
	}
}

// pings asks whether the server is there.
func (c *conversation) pings() {
	c.t.Helper()
	if err := c.cs.Ping(c.ctx()); err != nil {
		c.t.Errorf("ping: %v", err)
	}
}

// logs calls a tool that logs below the level and then above it.
func (c *conversation) logs(tool, quiet, loud, want string) {
	c.t.Helper()
	if err := c.cs.SetLogLevel(c.ctx(), "warning"); err != nil {
		c.t.Errorf("set the level: %v", err)
	}
	for len(c.logged) > 0 {
		<-c.logged
	}
	c.says(tool, quiet)
	c.says(tool, loud)
	select {
	case got := <-c.logged:
		if got != want {
			c.t.Errorf("logged: %s, want %s", got, want)
		}
	case <-time.After(5 * time.Second):
		c.t.Errorf("logged nothing, want %s", want)
	}
}

// A cause is a tool and what changes when it is called.
type cause struct {
	tool, args string
	change     Change
}

// watches wants who listens to be told of the changes that tools bring about.
func (c *conversation) watches(f SubscriptionFilter, causes ...cause) {
	c.t.Helper()
	sub, err := c.cs.Listen(c.ctx(), f)
	if err != nil {
		c.t.Errorf("listen: %v", err)
		return
	}
	next, stop := iter.Pull2(sub.Events(c.ctx()))
	defer stop()
	for _, cause := range causes {
		c.says(cause.tool, cause.args)
		if c.peer == "mcpgo" && c.rev.modern && !c.http {
			// On stdio mcp-go says of no change which subscription it is for.
			c.heard("a change", c.noticed, cause.change.Method)
		} else if got, err, _ := next(); err != nil || got != cause.change {
			c.t.Errorf("a change: %+v, %v, want %+v", got, err, cause.change)
		}
	}
	if err := sub.Close(); err != nil {
		c.t.Errorf("end of listening: %v", err)
	}
	if c.rev.modern {
		c.cancelled++
	}
}

// lies wants a result that breaks the schema of its tool not to pass.
func (c *conversation) lies() {
	c.t.Helper()
	if r, err := c.cs.CallTool(c.ctx(), "lie", nil); err == nil {
		c.t.Errorf("a result that does not fit its schema passed: %+v", r)
	}
}
