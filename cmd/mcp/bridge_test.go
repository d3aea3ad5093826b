package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpkit/mcp"
)

// helper is this program as a child of the client.
func helper(args ...string) *mcp.Command {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
	return &mcp.Command{Cmd: cmd}
}

// over makes the tour of a test: the demo is reached by what stands between.
func over(between func(g *guide) (func() mcp.Transport, error)) func(*guide) error {
	return func(g *guide) error {
		if err := g.startHTTP(); err != nil {
			return err
		}
		demo, err := between(g)
		g.demo = demo
		return err
	}
}

// All that the tour shows passes bridge and trace, in both eras and every
// direction: questions, changes, progress, logs, cancellation, the end.
func TestTourBetween(t *testing.T) {
	behind := func(name string, args ...string) func(*guide) error {
		return func(g *guide) error { // a child for each session
			found, _, end := background(t, `MCP: (.*)\n`, append([]string{name, "--http", "0"}, args...)...)
			g.demo = func() mcp.Transport { return &mcp.HTTP{URL: found[1]} }
			g.end = func() error {
				if code := end(); code != 0 {
					return fmt.Errorf("exit code %d", code)
				}
				return nil
			}
			return nil
		}
	}
	demo := []string{"--env", "GORACE=atexit_sleep_ms=0", "--", os.Args[0], "demo", "--page", fmt.Sprint(tourPage)}
	file := filepath.Join(t.TempDir(), "trace")
	between := map[string]func(*guide) error{
		"bridge URL": over(func(g *guide) (func() mcp.Transport, error) {
			return func() mcp.Transport { return helper("bridge", g.url+"/mcp") }, nil
		}),
		"bridge to SSE": over(func(g *guide) (func() mcp.Transport, error) {
			return func() mcp.Transport { return helper("bridge", g.url+"/sse") }, nil
		}),
		"trace URL": over(func(g *guide) (func() mcp.Transport, error) {
			return func() mcp.Transport { return helper("trace", g.url+"/mcp") }, nil
		}),
		"trace --http URL": over(func(g *guide) (func() mcp.Transport, error) {
			found, _, _ := background(t, `MCP: (.*)\n`, "trace", "--to", file, "--http", "0", g.url+"/mcp")
			return func() mcp.Transport { return &mcp.HTTP{URL: found[1]} }, nil
		}),
		"trace -- COMMAND": func(g *guide) error {
			g.fresh = true
			g.demo = func() mcp.Transport { return helper(append([]string{"trace", "--full"}, demo...)...) }
			return nil
		},
		"bridge --http -- COMMAND": behind("bridge", demo...),
		"trace --http -- COMMAND":  behind("trace", append([]string{"--to", file}, demo...)...),
	}
	t.Run("all", func(t *testing.T) {
		for name, start := range between {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, version := range []string{mcp.Version20241105, mcp.Version20250326, mcp.Version20251125, mcp.Version20260728} {
					if name == "bridge to SSE" && version == mcp.Version20260728 {
						continue
					}
					var out bytes.Buffer
					l := leg{versions: []string{version}, want: version, start: start}
					if err := l.run(t.Context(), &out); err != nil {
						t.Errorf("%s: %v\n%s", version, err, &out)
					}
				}
			})
		}
	})
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// pass gives lines to bridge or trace and returns what comes back.
func pass(t *testing.T, lines []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runs(t, strings.Join(lines, "\n")+"\n", args...)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// Messages go through as they are; what is none, and what gets no answer of
// the protocol's, is answered all the same.
func TestBridgeStdio(t *testing.T) {
	base := served(t)
	echo := `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},` + modernMeta + `}}`
	probe := `{"jsonrpc":"2.0","id":9007199254740993,"method":"server/discover","params":{` + modernMeta + `}}`
	closed := httptest.NewServer(nil)
	closed.Close()
	angry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "I do not want "+r.Header.Get("X-Key"), http.StatusForbidden)
	}))
	defer angry.Close()
	for _, c := range []struct {
		line string
		args []string
		want string // a part of the only line that comes back
	}{
		{echo, []string{base + "/mcp"}, `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[{"type":"text","text":"x"}]`},
		{"garbage", []string{base + "/mcp"}, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{probe, []string{base + "/sse"}, `{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601,"message":"method not found: server/discover"}}`},
		{probe, []string{base + "/none"}, `{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601,`},
		{echo, []string{base + "/none"}, `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"mcp: the answer to tools/call is 404 Not Found`},
		{probe, []string{closed.URL}, `"id":9007199254740993,"error":{"code":-32603,`},
		{probe, []string{"--header", "X-Key: s3cr3t", angry.URL}, `I do not want [hidden]`},
	} {
		code, stdout, stderr := pass(t, []string{c.line}, append([]string{"bridge"}, c.args...)...)
		if code != 0 || !strings.Contains(stdout, c.want) || strings.Count(stdout, "\n") != 1 || stderr != "" {
			t.Errorf("%s to %q: exit code %d\n%s%s", c.line, c.args, code, stdout, stderr)
		}
	}
}

// The end of either side ends the bridge, in bounded time.
func TestBridgeEnds(t *testing.T) {
	base := served(t)
	wait := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",` + modernMeta + `}}`
	start := time.Now()
	code, stdout, stderr := pass(t, []string{wait}, "bridge", base+"/mcp")
	if took := time.Since(start); code != 0 || stdout != "" || took < lastAnswers || took > lastAnswers+2*time.Second {
		t.Errorf("the client: exit code %d after %v\n%s%s", code, took, stdout, stderr)
	}
	for _, c := range []struct {
		command, stderr string
		code            int
	}{
		{"brief", "", 0},
		{"environment", "exit status 1", 1},
	} {
		in, w := io.Pipe() // a client that says nothing
		var errs bytes.Buffer
		code := run(t.Context(), []string{"trace", "--", os.Args[0], c.command}, in, io.Discard, &errs)
		w.Close()
		if code != c.code || !strings.Contains(errs.String(), c.stderr) {
			t.Errorf("the server %s: exit code %d\n%s", c.command, code, &errs)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	in, w := io.Pipe()
	defer w.Close()
	var errs bytes.Buffer
	if code := run(ctx, []string{"bridge", base + "/mcp"}, in, io.Discard, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("told to end: exit code %d\n%s", code, &errs)
	}
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func TestBridgeUsage(t *testing.T) {
	for _, c := range []struct {
		args, stderr string
		code         int
	}{
		{"bridge", "bridge: no server", 2},
		{"trace --full", "trace: no server", 2},
		{"bridge -- true", "trace takes any two", 2},
		{"bridge --http 0 http://localhost/mcp", "trace takes any two", 2},
		{"bridge http://localhost/a http://localhost/b", `bridge: what is "http://localhost/a"?`, 2},
		{"bridge --full http://localhost/a", "flag provided but not defined: -full", 2},
		{"bridge --http 0 -- /no/such/program", "/no/such/program", 1},
		{"trace -- /no/such/program", "/no/such/program", 1},
		{"trace --to /no/such/folder/file -- true", "/no/such/folder/file", 1},
		{"bridge --http 1.2.3.4:x -- true", "listen tcp", 1},
	} {
		code, stdout, stderr := runs(t, "", strings.Fields(c.args)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.stderr) {
			t.Errorf("mcp %s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := runs(t, "", "bridge", "--help"); code != 0 || stdout != usage {
		t.Errorf("no help: exit code %d\n%s", code, stdout)
	}
}

// What the endpoint of a bridge refuses, and how.
func TestBridgeHTTPRefuses(t *testing.T) {
	found, _, _ := background(t, `MCP: (.*)\n`, "bridge", "--http", "0", "--", os.Args[0], "demo")
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},` + modernMeta + `}}`
	modern := "Mcp-Protocol-Version: 2026-07-28|Mcp-Method: tools/call|Mcp-Name: "
	for _, c := range []struct {
		method, header, body string
		status               int
		want                 string
	}{
		{"POST", modern + "echo", call, 200, `"text":"x"`},
		{"POST", modern + "=?base64?ZWNobw==?=", call, 200, `"id":1,`},
		{"POST", modern + "fail", call, 400, `-32020`},
		{"POST", "Mcp-Protocol-Version: 2026-07-28|Mcp-Name: echo", call, 400, `-32020`},
		{"POST", "Mcp-Method: tools/call|Mcp-Name: echo", call, 400, `-32020`},
		{"POST", modern + "echo", strings.Replace(call, "2026-07-28", "2027-01-01", 1), 400, `-32020`},
		{"POST", strings.Replace(modern, "2026-07-28", "2027-01-01", 1) + "echo", strings.Replace(call, "2026-07-28", "2027-01-01", 1), 400, `-32022`},
		{"POST", "Mcp-Protocol-Version: 2026-07-28|Mcp-Method: ping", strings.Replace(call, "tools/call", "ping", 1), 404, `-32601`},
		{"POST", modern + "echo", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 202, ``},
		{"POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, `Mcp-Session-Id`},
		{"POST", "Mcp-Session-Id: none", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 404, `no such session`},
		{"POST", "", `[]`, 400, `one message`},
		{"POST", "", `{`, 400, `-32700`},
		{"POST", "", `"` + strings.Repeat("x", maxBody) + `"`, 413, `too large`},
		{"POST", "Content-Type: text/plain", call, 415, `application/json`},
		{"POST", modern + "echo|Origin: http://evil.example", call, 403, `origin`},
		{"POST", modern + "echo|Host: evil.example", call, 403, `origin`},
		{"GET", "", ``, 400, `Mcp-Session-Id`},
		{"GET", "Mcp-Protocol-Version: 2026-07-28", ``, 405, ``},
		{"DELETE", "Mcp-Session-Id: none", ``, 404, ``},
		{"PUT", "", ``, 405, ``},
	} {
		r, err := http.NewRequest(c.method, found[1], strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for _, line := range strings.Split(c.header, "|") {
			if name, value, _ := strings.Cut(line, ": "); name == "Host" {
				r.Host = value
			} else if name != "" {
				r.Header.Set(name, value)
			}
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s %.200s: %d, %s", c.method, c.header, c.body, response.StatusCode, body)
		}
	}
}

// Clients of one bridge that use the same ids and tokens get what is theirs.
func TestBridgeShares(t *testing.T) {
	found, _, _ := background(t, `MCP: (.*)\n`, "bridge", "--http", "0", "--", os.Args[0], "demo")
	var all sync.WaitGroup
	for client := range 8 {
		version := versions[len(versions)-1-client%2]
		all.Add(1)
		go func() {
			defer all.Done()
			cs, err := mcp.NewClient(mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Versions: []string{version}}).
				Connect(context.Background(), &mcp.HTTP{URL: found[1]})
			if err != nil {
				t.Error(err)
				return
			}
			defer cs.Close()
			for n := range 20 {
				seen := 0
				with := cs.With(mcp.CallOptions{Progress: func(p mcp.ProgressParams) {
					if seen++; p.Progress != float64(seen) || *p.Total != float64(client+1) {
						t.Errorf("client %d got %v of %v", client, p.Progress, *p.Total)
					}
				}})
				if _, err := mcp.CallTool[string](context.Background(), with, "countdown", countdownArgs{From: client + 1}); err != nil || seen != client+1 {
					t.Errorf("client %d: %d times progress, %v", client, seen, err)
				}
				want := fmt.Sprintf("%d from %d", n, client)
				if got, err := mcp.CallTool[string](context.Background(), cs, "echo", echoArgs{want}); got != want {
					t.Errorf("client %d: %q, not %q, %v", client, got, want, err)
				}
			}
		}()
	}
	all.Wait()
}

// A server that dies behind a bridge is started again by who comes next.
func TestBridgeServerDies(t *testing.T) {
	found, stderr, end := background(t, `MCP: (.*)\n`, "bridge", "--http", "0", "--", os.Args[0], "demo")
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		code, stdout, errs := runs(t, "", "call", "die", "--version", version, found[1])
		if code != 1 || stdout != "" || !strings.Contains(errs, "the server has ended") {
			t.Errorf("%s: exit code %d\n%s%s", version, code, stdout, errs)
		}
		if code, stdout, errs := runs(t, "", "call", "echo", "text=x", "--version", version, found[1]); code != 0 {
			t.Errorf("%s, after: exit code %d\n%s%s", version, code, stdout, errs)
		}
	}
	if code := end(); code != 0 || strings.Count(stderr.String(), "exit status 3") != 2 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A server that is silent when it is asked in words that it does not know is
// an old one: the client goes on with initialize.
func TestBridgeSilentServer(t *testing.T) {
	g := &gateway{start: helper("deaf").Connect, log: io.Discard, probe: 100 * time.Millisecond, sessions: make(map[string]*process)}
	defer g.end()
	s := httptest.NewServer(g)
	defer s.Close()
	code, stdout, stderr := runs(t, "", "ping", "--timeout", "1s", s.URL)
	if code != 1 || !strings.Contains(stderr, "initialize: no answer") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A trace has both directions with times, over HTTP what matters of it, and
// no secrets.
func TestTrace(t *testing.T) {
	base := served(t)
	file := filepath.Join(t.TempDir(), "trace")
	const stamp = `^\d\d:\d\d:\d\d\.\d\d\d `
	traced := map[string]string{}
	keep := func(name string, args ...string) {
		t.Helper()
		code, _, stderr := runs(t, "", args...)
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		traced[name] = stderr
	}
	secret := []string{"--header", "Authorization: Bearer s3cr3t-1", "--header", "Cookie: s3cr3t-2", "--header", "X-Api-Key: s3cr3t-3"}
	call := func(more ...string) []string {
		return append([]string{"call", "echo", `{"text":"{\"password\":\"s3cr3t-4\"}"}`}, more...)
	}
	keep("verb, modern", call(append(secret, "--trace", base+"/mcp?token=s3cr3t-5")...)...)
	keep("verb, legacy", call(append(secret, "--trace", "--version", "2025-11-25", base+"/mcp")...)...)
	keep("verb, SSE", call("--trace", "--version", "2025-06-18", base+"/sse")...)
	keep("verb, stdio", call("--trace", "--", os.Args[0], "demo")...)
	found, _, end := background(t, `MCP: (.*)\n`, append(append([]string{"trace", "--http", "0", "--to", file}, secret...), base+"/mcp?token=s3cr3t-5")...)
	keep("client", call(append(secret, "--version", "2025-11-25", found[1])...)...)
	end()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	traced["proxy"] = string(text)
	const post = stamp + `→ POST http://127\.0\.0\.1:\d+/`
	for name, wants := range map[string][]string{
		"verb, modern": {post + `mcp\?token=\[hidden\]$`, `^    Mcp-Method: tools/call$`, `^    Mcp-Name: echo$`, `^    Authorization: Bearer \[hidden\]$`, `^    Cookie: \[hidden\]$`,
			`^    X-Api-Key: \[hidden\]$`, stamp + `← 200 OK to POST, after .*s$`, stamp + `→ tools/call, request 2 \{.*password.*hidden`, stamp + `← result of 2, tools/call, after .* \{`},
		"verb, legacy": {`^    Mcp-Session-Id: \[hidden, mark ....\]$`, `→ GET http`, `→ DELETE http`, `← 202 Accepted to POST`, `← event \(message, id \S+\)`},
		"verb, SSE":    {`← event \(endpoint\) \?sessionId=\[hidden\]$`, `→ POST .*/sse\?sessionId=\[hidden\]$`, `← 404 Not Found to POST`, `← error without an id`},
		"verb, stdio":  {stamp + `→ server/discover, request 1 \{`, stamp + `← result of 1, server/discover, after .* \{`},
		"proxy":        {post + `mcp\?token=\[hidden\]$`, `^    Mcp-Session-Id: \[hidden, mark ....\]$`, `→ initialize, request 1 \{`, `→ DELETE http`},
		"client":       nil,
	} {
		for _, want := range wants {
			if !regexp.MustCompile("(?m)" + want).MatchString(traced[name]) {
				t.Errorf("%s: nothing of %s in\n%s", name, want, traced[name])
			}
		}
		if strings.Contains(traced[name], "s3cr3t") {
			t.Errorf("%s: a secret in\n%s", name, traced[name])
		}
	}
}
