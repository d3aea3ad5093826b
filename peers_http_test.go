//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Real peers over HTTP: the same conversations as over stdio, with a proxy
// between client and server, and what only HTTP has.

// serve starts a server, which is told its port, and waits until it takes
// connections; it returns its origin.
func (p *peers) serve(t *testing.T, command func(port string) *exec.Cmd) string {
	for range 3 { // another may have taken the port
		port := strconv.Itoa(20000 + rand.IntN(12000)) // not one of those that the system gives away
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err != nil {
			continue
		} else if l.Close(); runServer(t, command(port), port) {
			return "http://127.0.0.1:" + port
		}
	}
	t.Fatal("the server does not start")
	return ""
}

// runServer reports whether the server came up; it ends with the test.
func runServer(t *testing.T, cmd *exec.Cmd, port string) bool {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "PORT="+port)
	log := filepath.Join(t.TempDir(), "server.log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(died)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-died
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("the server said: %s", text)
		}
	})
	for start := time.Now(); time.Since(start) < 30*time.Second; {
		select {
		case <-died:
			return false
		case <-time.After(10 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return true
		}
	}
	return false
}

func (p *peers) serveDemo(t *testing.T, args ...string) string {
	return p.serve(t, func(port string) *exec.Cmd {
		return exec.Command(p.demo, append([]string{"demo", "-http", "127.0.0.1:" + port}, args...)...)
	})
}

// TestPeersAsHTTPClients lets clients that nobody here wrote talk to our demo
// server over Streamable HTTP, and those that still can over HTTP+SSE.
func TestPeersAsHTTPClients(t *testing.T) {
	shows(t, "http.endpoint.post", "http.endpoint.post-get", "http.post.notif-202", "http.post.request-content-type", "http.session.ascii",
		"http.get.sse-or-405", "http.get.no-response", "http.sse.end-after-response", "http.sse.prime", "http.sse.accel-buffering",
		"http.sse.no-resume", "http.resume.id-unique", "http.cancel.stream-close", "http.cancel.silent", "http.compat.sse-server",
		"sse.endpoints", "sse.endpoint-event", "sse.message-event")
	p := installPeers(t)
	p.demo = filepath.Join(t.TempDir(), "mcp")
	goBuild(t, "cmd/mcp", p.demo)
	for _, l := range clientLegs {
		if l.version == Version20241105 {
			continue // which had no Streamable HTTP
		}
		t.Run(l.peer+"/"+l.version, func(t *testing.T) {
			t.Parallel()
			p.runHTTPClient(t, l, "demo", l.overHTTP(l.demo()), 3, p.serveDemo(t)+"/mcp")
		})
		if l.version == Version20250326 || l.version == Version20250618 {
			continue // to be quick
		}
		t.Run(l.peer+"/"+l.version+"/wide", func(t *testing.T) {
			t.Parallel()
			p.runHTTPClient(t, l, "wide", l.wide(), 6, p.serveDemo(t, "-page", "4")+"/mcp")
		})
	}
	for _, l := range []leg{{"ts1", Version20251125}, {"ts2", Version20251125}, {"ts2", Version20241105}, {"gosdk", Version20251125}, {"gosdk", Version20241105}, {"mcpgo", Version20241105}} {
		t.Run(l.peer+"/"+l.version+"/sse", func(t *testing.T) {
			t.Parallel()
			p.runHTTPClient(t, l, "demo", l.overSSE(l.demo()), 3, p.serveDemo(t)+"/sse")
		})
	}
}

// overHTTP changes what the ping of go-sdk gets at 2026-07-28: over stdio it counts as one
// of an earlier revision, but over HTTP its headers say of which it is.
func (l leg) overHTTP(steps []step) []step {
	for i := range steps {
		if l.revision().modern && steps[i].name == "ping" && l.peer == "gosdk" {
			steps[i].want = `-32602`
		}
	}
	return steps
}

// overSSE changes the steps of a client that cannot be asked there.
func (l leg) overSSE(steps []step) []step {
	for i := range steps {
		if l.peer == "mcpgo" && slices.Contains([]string{"sample", "roots"}, steps[i].name) {
			steps[i].want = `{"text":"the client did not declare"}`
		}
	}
	return steps
}

// runHTTPClient is runClient with a server at a URL.
func (p *peers) runHTTPClient(t *testing.T, l leg, conversation string, steps []step, rounds int, server string) *tap {
	tap, url := p.newHTTPTap(t, server, nil)
	p.runProgram(t, l, conversation, steps, url)
	tap.http.Close() // waits for what is under way
	tap.checkServer(l.revision(), rounds)
	if t.Failed() {
		tap.log()
	}
	return tap
}

// TestPeersHTTPInspector has the inspector's command line use our demo server
// at a URL.
func TestPeersHTTPInspector(t *testing.T) {
	shows(t, "http.endpoint.post", "lifecycle.version.server-echo", "sse.endpoints")
	p := installPeers(t)
	p.demo = filepath.Join(t.TempDir(), "mcp")
	goBuild(t, "cmd/mcp", p.demo)
	for _, l := range inspectorLegs {
		for _, at := range []struct {
			era, path string
			rev       *revision
		}{{"legacy", "/mcp", rev20251125}, {"modern", "/mcp", rev20260728}, {"legacy", "/sse", rev20251125}} {
			if !slices.Contains([]string{"initialize", "call", "fail"}, l.name) || at.path == "/sse" && l.name != "call" {
				continue // the rest is as over stdio
			}
			t.Run(l.name+"/"+at.era+at.path, func(t *testing.T) {
				t.Parallel()
				tap, url := p.newHTTPTap(t, p.serveDemo(t)+at.path, nil)
				l.run(t, p, at.era, "--", url)
				tap.http.Close()
				tap.checkServer(at.rev, 0)
				if t.Failed() {
					tap.log()
				}
			})
		}
	}
}

// httpFixture is a server of ours whose calls take their time.
func httpFixture() *Server {
	s := NewServer(Implementation{Name: "fixture", Version: "1.0.0"}, nil)
	count := func(ctx context.Context, req *Request, to int) (string, error) {
		for i := range to {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if err := req.Progress(ctx, ProgressParams{Progress: float64(i + 1)}); err != nil {
				return "", err
			}
		}
		return fmt.Sprint("counted to ", to), nil
	}
	type countArgs struct {
		To int `json:"to"`
	}
	AddTool(s, Tool{Name: "count"}, func(ctx context.Context, req *Request, in countArgs) (string, error) { return count(ctx, req, in.To) })
	AddTool(s, Tool{Name: "poll"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		req.CloseStream(50 * time.Millisecond)
		return count(ctx, req, 5)
	})
	AddTool(s, Tool{Name: "nap"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		_, err := count(ctx, req, 30)
		return "rested", err
	})
	type whereArgs struct {
		Region string `json:"region" jsonschema:"x-mcp-header=Region"`
	}
	AddTool(s, Tool{Name: "where"}, func(_ context.Context, req *Request, in whereArgs) (string, error) {
		if len(req.Header["Mcp-Param-Region"]) > 0 {
			return in.Region + ", told in a header, too", nil
		}
		return in.Region, nil
	})
	AddTool(s, Tool{Name: "touch"}, func(ctx context.Context, _ *Request, _ struct{}) (string, error) {
		s.ResourceUpdated("peers://watched")
		return "touched", nil
	})
	s.AddResource(Resource{URI: "peers://watched", Name: "watched"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{URI: "peers://watched", Text: "Watch me."}}}, nil
	})
	return s
}

// serveHTTP serves at a URL, and ends in order.
func serveHTTP(t *testing.T, s *Server, opts *HTTPOptions) string {
	h := NewHTTPHandler(s, opts)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.Handle("/sse", h.SSE())
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server.URL
}

// TestPeersHTTPCut breaks connections between our server and clients that
// nobody here wrote, and has the server close a stream itself.
func TestPeersHTTPCut(t *testing.T) {
	shows(t, "http.resume.replay", "http.resume.same-stream", "http.sse.server-disconnect")
	p := installPeers(t)
	for _, l := range []leg{{"ts1", Version20251125}, {"ts2", Version20251125}, {"gosdk", Version20251125}, {"mcpgo", Version20251125}} {
		t.Run(l.peer, func(t *testing.T) {
			t.Parallel()
			cut := map[string]bool{}
			tap, url := p.newHTTPTap(t, serveHTTP(t, httpFixture(), nil)+"/mcp", func(_ *exchange, e *tapEvent) bool {
				// mcp-go does not take up a stream that broke.
				what := map[bool]string{strings.Contains(e.data, notifyProgress): "call", strings.Contains(e.data, notifyResourceUpdated): "stream"}[true]
				if what == "" || cut[what] || l.peer == "mcpgo" {
					return false
				}
				cut[what] = true
				return true
			})
			p.runProgram(t, l, "cut", []step{
				{"connect", `{"version":"2025-11-25","server":"fixture"}`},
				{"call", `{"seen":[1,2,3,4,5],"text":"counted to 5"}`},
				{"poll", `{"text":"counted to 5"}`},
				{"stream", `{"times":2}`},
				{"close", `null`},
			}, url)
			tap.http.Close()
			tap.checkServer(rev20251125, 0)
			resumed := 0
			for _, x := range tap.http.seen("GET") {
				if x.sent.Get("Last-Event-Id") != "" && x.status == http.StatusOK {
					resumed++
				}
			}
			if want := map[bool]int{true: 3, false: 1}[l.peer != "mcpgo"]; resumed < want {
				t.Errorf("%d streams were resumed, want %d", resumed, want)
			}
			if t.Failed() {
				tap.log()
			}
		})
	}
}

// TestPeersHTTPLost ends a session of our server before its client knows.
func TestPeersHTTPLost(t *testing.T) {
	shows(t, "http.session.gone-404")
	p := installPeers(t)
	for _, l := range []leg{{"ts1", Version20251125}, {"ts2", Version20251125}, {"gosdk", Version20251125}, {"mcpgo", Version20251125}} {
		t.Run(l.peer, func(t *testing.T) {
			t.Parallel()
			tap, url := p.newHTTPTap(t, serveHTTP(t, httpFixture(), nil)+"/mcp", nil)
			said := map[string]string{"mcpgo": "session terminated (404)"}[l.peer]
			if said == "" {
				said = "no such session" // as our server says
			}
			p.runProgram(t, l, "lost", []step{
				{"connect", `{"version":"2025-11-25","server":"fixture"}`},
				{"lost", `{"deleted":204,"call":"` + said + `"}`},
				{"close", `null`},
			}, url)
			tap.http.Close()
			tap.checkServer(rev20251125, 0)
			refused := 0
			for _, x := range tap.http.seen("POST") {
				if m := x.request(); m != nil && m.Method == methodToolsCall && x.status == http.StatusNotFound {
					refused++
				}
			}
			if refused != 1 {
				t.Errorf("%d calls got 404, want 1", refused)
			}
			if t.Failed() {
				tap.log()
			}
		})
	}
}

// TestPeersHTTPModes has clients that nobody here wrote use our server where it
// is without sessions or without streams.
func TestPeersHTTPModes(t *testing.T) {
	shows(t, "http.get.sse-or-405")
	p := installPeers(t)
	for _, mode := range []struct {
		name string
		opts *HTTPOptions
	}{{"stateless", &HTTPOptions{Stateless: true}}, {"json", &HTTPOptions{JSON: true}}} {
		for _, l := range []leg{{"ts1", Version20251125}, {"ts2", Version20250326}, {"gosdk", Version20251125}, {"mcpgo", Version20250618}} {
			t.Run(mode.name+"/"+l.peer, func(t *testing.T) {
				t.Parallel()
				steps := []step{{"connect", `{"version":"` + l.version + `","server":"fixture"}`}, {"nap", `{"text":"rested"}`}, {"close", `null`}}
				tap := p.runHTTPClient(t, l, "nap", steps, 0, serveHTTP(t, httpFixture(), mode.opts)+"/mcp")
				for _, x := range tap.http.seen("") {
					if mode.name == "stateless" && x.got.Get("Mcp-Session-Id") != "" || mode.name == "json" && x.method == "POST" && x.stream() {
						t.Errorf("in mode %s: %s", mode.name, x)
					}
				}
			})
		}
	}
}

// httpServerLegs are the servers that our client talks to over HTTP, at a
// path. server-everything is built on the TypeScript SDK v1. The SDK in Go and
// that of TypeScript v2 serve 2026-07-28 without sessions, and then cannot ask
// who is older.
var httpServerLegs = []struct {
	leg
	name    string
	settles *revision
	path    string
	command func(*peers, string) *exec.Cmd
	talk    func(*conversation)
}{
	{leg{"everything", "auto"}, "streamable", rev20251125, "/mcp", everythingHTTP("streamableHttp"), (*conversation).everything},
	{leg{"everything", Version20250618}, "streamable", rev20250618, "/mcp", everythingHTTP("streamableHttp"), (*conversation).everything},
	{leg{"everything", Version20250326}, "streamable", rev20250326, "/mcp", everythingHTTP("streamableHttp"), (*conversation).everything},
	{leg{"everything", "auto"}, "sse", rev20251125, "/sse", everythingHTTP("sse"), (*conversation).everything},
	{leg{"everything", Version20241105}, "sse", rev20241105, "/sse", everythingHTTP("sse"), (*conversation).everything},
	{leg{"gosdk", "auto"}, "stateless", rev20260728, "/mcp", goServer("gosdk", "-stateless"), (*conversation).foreign},
	{leg{"gosdk", Version20251125}, "stateless", rev20251125, "/mcp", goServer("gosdk", "-stateless"), (*conversation).alone},
	{leg{"gosdk", "auto"}, "stateful", rev20251125, "/mcp", goServer("gosdk"), (*conversation).foreign},
	{leg{"gosdk", Version20250618}, "stateful", rev20250618, "/mcp", goServer("gosdk"), (*conversation).foreign},
	{leg{"gosdk", Version20251125}, "sse", rev20251125, "/sse", goServer("gosdk"), (*conversation).foreign},
	{leg{"mcpgo", "auto"}, "stateful", rev20260728, "/mcp", goServer("mcpgo"), (*conversation).foreign},
	{leg{"mcpgo", Version20251125}, "stateful", rev20251125, "/mcp", goServer("mcpgo"), (*conversation).foreign},
	{leg{"mcpgo", Version20250618}, "stateless", rev20250618, "/mcp", goServer("mcpgo", "-stateless"), (*conversation).alone},
	{leg{"mcpgo", Version20251125}, "sse", rev20251125, "/sse", goServer("mcpgo"), (*conversation).foreignQuiet},
	{leg{"ts2", "auto"}, "stateful", rev20260728, "/mcp", ts2Server, (*conversation).foreign},
	{leg{"ts2", Version20251125}, "stateful", rev20251125, "/mcp", ts2Server, (*conversation).foreign},
	{leg{"ts2", Version20250618}, "stateless", rev20250618, "/mcp", ts2Stateless, (*conversation).alone},
}

func everythingHTTP(mode string) func(*peers, string) *exec.Cmd {
	return func(p *peers, _ string) *exec.Cmd { return exec.Command("node", p.script("everything"), mode) }
}

func ts2Stateless(p *peers, dir string) *exec.Cmd {
	cmd := ts2Server(p, dir)
	cmd.Args = append(cmd.Args, "-stateless")
	return cmd
}

// TestPeersAsHTTPServers lets our client talk to servers that nobody here
// wrote over HTTP.
func TestPeersAsHTTPServers(t *testing.T) {
	shows(t, "http.post.accept", "http.post.body-modern", "http.post.body-single", "http.post.headers", "http.post.client-both",
		"http.post.client-responses", "http.header.version", "http.header.method", "http.header.name", "http.header.version-legacy",
		"http.session.echo", "http.session.delete", "http.get.accept", "http.get.405-tolerated", "http.cancel.client-closes",
		"http.cancel.explicit-legacy", "http.compat.fallback", "http.compat.sse-client-post", "http.compat.sse-client-endpoint",
		"sse.client.post")
	p := installPeers(t)
	for _, l := range httpServerLegs {
		t.Run(l.peer+"/"+l.version+"/"+l.name, func(t *testing.T) {
			t.Parallel()
			p.converse(t, l.leg, l.settles, func(dir string) (Transport, *tap) {
				tap, url := p.newHTTPTap(t, p.serve(t, func(string) *exec.Cmd { return l.command(p, dir) })+l.path, nil)
				return &HTTP{URL: url}, tap
			}, l.talk)
		})
	}
}

// foreignQuiet is the conversation with mcp-go over HTTP+SSE, where it cannot ask.
func (c *conversation) foreignQuiet() {
	c.quiet = true
	c.foreign()
}

// alone is what a server without sessions can do for a client of an older
// revision.
func (c *conversation) alone() {
	c.lists("tools", "echo", "add", "countdown", "wait", "ask", "sample", "roots", "fail")
	c.lists("resources", "demo://readme", "demo://logo")
	c.lists("templates", "demo://users/{id}/profile")
	c.lists("prompts", "greet", "review")
	c.says("echo", `{"text":"Grüße <b>&</b> 世界"}`, "Grüße <b>&</b> 世界")
	c.fails("fail", `{}`)
	c.reads("demo://users/42/profile", "42")
	c.prompts("greet", map[string]string{"name": "Ada"}, "Ada")
	c.completes(CompleteParams{Ref: CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: CompleteArgument{Name: "style", Value: "f"}}, "formal", "friendly")
	c.pings()
}

// TestPeersHTTPServersCut breaks connections to servers that nobody here wrote,
// and ends a session of theirs before our client knows.
func TestPeersHTTPServersCut(t *testing.T) {
	shows(t, "http.resume.get", "http.resume.via-get-only", "http.session.reinitialize", "http.sse.no-resume")
	p := installPeers(t)
	for _, l := range []struct {
		leg
		settles           *revision
		command           func(*peers, string) *exec.Cmd
		count, args, echo string
		values            []float64
	}{
		{leg{"everything", "auto"}, rev20251125, everythingHTTP("streamableHttp"), "trigger-long-running-operation", `{"duration":0.2,"steps":4}`, `{"message":"still here"}`, []float64{1, 2, 3, 4}},
		{leg{"gosdk", Version20251125}, rev20251125, goServer("gosdk"), "countdown", `{"from":4,"delayMs":50}`, `{"text":"still here"}`, []float64{1, 2, 3, 4}},
		// mcp-go sends progress on the stream of the session, too, and does not hold on to it.
		{leg{"mcpgo", Version20251125}, rev20251125, goServer("mcpgo"), "", "", `{"text":"still here"}`, nil},
		{leg{"ts2", Version20251125}, rev20251125, ts2Server, "countdown", `{"from":4,"delayMs":50}`, `{"text":"still here"}`, []float64{1, 2, 3, 4}},
		{leg{"ts2", Version20260728}, rev20260728, ts2Server, "countdown", `{"from":4,"delayMs":50}`, `{"text":"still here"}`, nil},
	} {
		t.Run(l.peer+"/"+l.version, func(t *testing.T) {
			t.Parallel()
			origin := p.serve(t, func(string) *exec.Cmd { return l.command(p, t.TempDir()) })
			p.converse(t, l.leg, l.settles, func(string) (Transport, *tap) {
				cut := false
				tap, url := p.newHTTPTap(t, origin+"/mcp", func(_ *exchange, e *tapEvent) bool {
					now := !cut && l.count != "" && strings.Contains(e.data, notifyProgress)
					cut = cut || now
					return now
				})
				return &HTTP{URL: url}, tap
			}, func(c *conversation) {
				if l.settles.modern { // where no stream is taken up again
					if r, err := c.cs.CallTool(c.ctx(), l.count, json.RawMessage(l.args)); err == nil {
						t.Errorf("a call whose stream broke: %+v", r)
					}
					c.says("echo", l.echo, "still here")
					return
				}
				if l.count != "" {
					c.counts(l.count, l.args, l.values...)
				}
				c.says("echo", l.echo, "still here")
				if l.peer != "everything" { // which does not say 404, as it should, but 400
					c.loses(origin + "/mcp")
					c.says("echo", l.echo, "still here")
				}
			})
		})
	}
}

// loses ends the session behind our client's back, and wants a new one once a
// call needs it.
func (c *conversation) loses(url string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.ctx(), http.MethodDelete, url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", c.tap.http.session())
	r.Header.Set("Mcp-Protocol-Version", c.rev.version)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	w.Body.Close()
	if w.StatusCode/100 != 2 {
		c.t.Errorf("DELETE got %s", w.Status)
	}
}
