package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpkit/mcp"
)

// served serves the demo over HTTP for a test and returns where.
func served(t *testing.T, versions ...string) (base string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	handler, shutdown := demoHandler(demoServer(log, 0), log)
	s := httptest.NewServer(handler)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := shutdown(ctx); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return s.URL
}

// Every verb takes a URL, at every revision.
func TestVerbsURL(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testVerbsURL(t, version)
		})
	}
}

func testVerbsURL(t *testing.T, version string) {
	base := served(t)
	for _, c := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{args: "discover", stdout: "demo 0.1.0…"},
		{args: "ping", stdout: "demo answered after …"},
		{args: "tools", stdout: "echo\n    Says the text again\n…"},
		{args: "resources", stdout: "demo://readme\n…"},
		{args: "templates", stdout: "demo://users/{id}/profile\n…"},
		{args: "prompts", stdout: "greet\n…"},
		{args: "call echo text=hello", stdout: "hello\n"},
		{args: "call add a=2 b=40", stdout: "{\"sum\":42}\n"},
		{args: "call countdown from=2", stdout: "lift-off\n", stderr: "progress: 1/2…"},
		{args: "call log level=error message=hello", stdout: "logged at error\n", stderr: "log: error: {\"msg\":\"hello\"}\n"},
		{args: "call fail", code: 1, stderr: "mcp: this tool always fails\n"},
		{args: "call panic", code: 1, stderr: "mcp: internal error (code -32603)\n"},
		{args: "call nothing", code: 1, stderr: "mcp: unknown tool: nothing (code -32602)…"},
		{args: "call wait --timeout 200ms", code: 1, stderr: "mcp: tools/call: no answer within 200ms…"},
		{args: "read demo://readme", stdout: readme},
		{args: "read demo://nothing", code: 1, stderr: "mcp: resource not found: demo://nothing…"},
		{args: "get greet name=Ada", stdout: "user: Greet Ada…"},
		{args: "complete greet style=fr", stdout: "friendly\n"},
		{args: "listen demo://readme --call touch -n 1", stdout: "demo://readme has changed\n"},
		{args: "listen tools --call bonus -n 1", stdout: "tools have changed\n"},
		{args: "listen --for 10ms"},
		{args: "log warning log level=error message=hello", stdout: "error: {\"msg\":\"hello\"}\n"},
	} {
		if strings.HasPrefix(c.args, "complete") && version == mcp.Version20241105 {
			continue // servers cannot say there that they have it
		}
		args := append(strings.Fields(c.args), "--version", version, base+"/mcp")
		code, stdout, stderr := runs(t, "", args...)
		if code != c.code || !fits(stdout, c.stdout) || !fits(stderr, c.stderr) {
			t.Errorf("mcp %q: exit code %d\nstdout: %s\nstderr: %s", args, code, stdout, stderr)
		}
	}
}

// A URL at which several revisions, or another transport, are spoken.
func TestVerbsURLChoice(t *testing.T) {
	base := served(t)
	for _, c := range []struct{ args, stdout, stderr string }{
		{"call ask --version 2025-11-25 URL/mcp", "decline\n", "The server asks: Who are you?\n…"},
		{"call ask URL/mcp", "decline\n", "The server asks: Who are you?\n…"},
		{"call book URL/sse", "seat 1 was given back\n", "The server asks: Which day?\n…"},
		{"listen demo://readme --call touch -n 1 --version 2024-11-05 URL/sse", "demo://readme has changed\n", ""},
		{"discover --version 2024-11-05 URL/sse", "demo 0.1.0\n…", ""},
		{"read file:///demo/hello.txt URL/mcp", "Hello from a file.\n", ""},
	} {
		code, stdout, stderr := runs(t, "", strings.Fields(strings.ReplaceAll(c.args, "URL", base))...)
		if code != 0 || !fits(stdout, c.stdout) || !fits(stderr, c.stderr) {
			t.Errorf("mcp %s: exit code %d\nstdout: %s\nstderr: %s", c.args, code, stdout, stderr)
		}
	}
}

// What is wrong with a URL or what answers there; no message has a secret.
func TestVerbsURLErrors(t *testing.T) {
	const secret = "s3cr3t-value"
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello", r.URL.Query().Get("token")) })
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "not with "+r.Header.Get("Authorization")+r.Header.Get("X-Key"), http.StatusUnauthorized)
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/mcp", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/deaf", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		<-r.Context().Done()
	})
	plain, secured := httptest.NewServer(mux), httptest.NewUnstartedServer(mux)
	secured.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secured.StartTLS()
	gone := httptest.NewServer(nil)
	gone.Close()
	defer plain.Close()
	defer secured.Close()
	for _, c := range []struct {
		args   []string
		code   int
		stderr string // a part of it
	}{
		{[]string{"tools", plain.URL + "/none"}, 1, "404 Not Found"},
		{[]string{"tools", plain.URL + "/plain?token=" + secret}, 1, "hello [hidden]"},
		{[]string{"tools", plain.URL + "/broken"}, 1, "500 Internal Server Error"},
		{[]string{"tools", plain.URL + "/away"}, 1, "307 Temporary Redirect"},
		{[]string{"tools", "--timeout", "200ms", plain.URL + "/deaf"}, 1, "no answer within 200ms"},
		{[]string{"tools", "--header", "Authorization: Bearer " + secret, plain.URL + "/login"}, 1, "401 Unauthorized"},
		{[]string{"tools", "--header", "x-key:" + secret, plain.URL + "/login"}, 1, "not with [hidden]"},
		{[]string{"tools", "--trace", "--header", "x-key:" + secret, plain.URL + "/login"}, 1, "401 Unauthorized to POST"},
		{[]string{"tools", gone.URL + "/mcp?api_key=" + secret}, 1, "refused"},
		{[]string{"tools", strings.Replace(gone.URL, "//", "//me:"+secret+"@", 1)}, 1, "refused"},
		{[]string{"tools", secured.URL + "/plain"}, 1, "certificate"},
		{[]string{"tools", strings.Replace(plain.URL, "http:", "https:", 1)}, 1, "HTTP response to HTTPS client"},
		{[]string{"tools", strings.Replace(secured.URL, "https:", "http:", 1)}, 1, "400 Bad Request"},
		{[]string{"tools", "http://"}, 2, "tools: the server's URL makes no sense"},
		{[]string{"tools", "ftp://host/mcp"}, 2, "tools: no server: its URL comes last"},
		{[]string{"tools", "localhost:80/mcp"}, 2, "tools: no server: its URL comes last"},
		{[]string{"read", plain.URL}, 2, "read needs URI"},
		{[]string{"tools", "this", plain.URL}, 2, `tools: what is "this"?`},
		{[]string{"tools", "--header", secret, plain.URL}, 2, "tools: -header wants 'Name: value'"},
		{[]string{"tools", "--header", "X Y: " + secret, plain.URL}, 2, "tools: -header wants 'Name: value'"},
		{[]string{"tools", "--header", "X: " + secret, "--", "true"}, 2, "tools: -header is for a server at a URL"},
		{[]string{"tools", "--header", "X: " + secret + "\nY: z", plain.URL}, 1, "invalid header field value"},
		{[]string{"tools", "--env", "A=b", plain.URL}, 2, "-env and -stderr are for a server that is a child process"},
	} {
		code, stdout, stderr := runs(t, "", c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.stderr) || strings.Contains(stderr, secret) {
			t.Errorf("mcp %q: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// The headers that were given reach the server.
func TestVerbsHeader(t *testing.T) {
	var mu sync.Mutex
	var got []string
	h := mcp.NewHTTPHandler(demoServer(slog.New(slog.DiscardHandler), 0), nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, strings.Join(append(r.Header["X-Key"], r.Header.Get("Authorization")), "|"))
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	defer h.Shutdown(context.Background())
	code, stdout, stderr := runs(t, "", "ping", "--header", "X-Key: a", "--header", "x-key: b: c", "--header", "Authorization: Basic xyz", s.URL)
	if code != 0 || len(got) == 0 || got[0] != "a|b: c|Basic xyz" || got[len(got)-1] != got[0] {
		t.Errorf("exit code %d, got %q\n%s%s", code, got, stdout, stderr)
	}
}

// Being told to stop ends a verb over HTTP as it does over stdio, and the
// server hears of it.
func TestVerbsURLInterrupted(t *testing.T) {
	base := served(t)
	for _, c := range []struct {
		args, stderr string
		code         int
	}{
		{"call wait --version 2025-11-25 URL/mcp", "mcp: interrupted\n", 1},
		{"call wait URL/mcp", "mcp: interrupted\n", 1},
		{"call wait URL/sse", "mcp: interrupted\n", 1},
		{"listen URL/mcp", "", 0},
		{"log info wait URL/mcp", "", 0},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(200*time.Millisecond, cancel)
		var stdout, stderr bytes.Buffer
		code := run(ctx, strings.Fields(strings.ReplaceAll(c.args, "URL", base)), strings.NewReader(""), &stdout, &stderr)
		if code != c.code || stdout.Len() > 0 || stderr.String() != c.stderr {
			t.Errorf("mcp %s: exit code %d\n%s%s", c.args, code, &stdout, &stderr)
		}
	}
	if code, stdout, stderr := runs(t, "", "call", "requests", base+"/mcp"); !strings.Contains(stdout, `"(cancelled)":`) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A writer that can be read while it is written to.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sharedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sharedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// background runs the program until end is called, which returns its exit
// code, and waits until it has printed what matches.
func background(t *testing.T, wants string, args ...string) (found []string, stderr *sharedBuffer, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stderr = new(sharedBuffer)
	code := make(chan int, 1)
	go func() { code <- run(ctx, args, strings.NewReader(""), io.Discard, stderr) }()
	end = sync.OnceValue(func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(10 * time.Second):
			t.Errorf("mcp %q does not end", args)
			return -1
		}
	})
	t.Cleanup(func() { end() })
	want := regexp.MustCompile(wants)
	for range 500 {
		if found = want.FindStringSubmatch(stderr.String()); found != nil {
			return found, stderr, end
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("mcp %q prints nothing of %s:\n%s", args, wants, stderr)
	return nil, nil, nil
}

// The demo over HTTP says where it is, on a loopback address unless a host
// is given.
func TestDemoHTTP(t *testing.T) {
	for _, addr := range []string{"0", ":0", "localhost:0", "127.0.0.1:0"} {
		found, stderr, end := background(t, `MCP: (http://127\.0\.0\.1:\d+/mcp)\nHTTP\+SSE \(2024-11-05\): (http://127\.0\.0\.1:\d+/sse)\n`, "demo", "--http", addr, "--page", "5")
		for _, url := range found[1:] {
			if code, stdout, stderr := runs(t, "", "ping", url); code != 0 {
				t.Errorf("%s: exit code %d\n%s%s", url, code, stdout, stderr)
			}
		}
		if code := end(); code != 0 {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	}
}

// It ends in order when it is told to, also with streams open.
func TestDemoHTTPEnds(t *testing.T) {
	found, stderr, end := background(t, `MCP: (.*)/mcp\n`, "demo", "--http", "0")
	var listening sync.WaitGroup
	for _, args := range []string{"listen demo://clock /mcp", "listen demo://clock --version 2025-11-25 /mcp", "listen demo://clock /sse"} {
		args := strings.Fields(args)
		args[len(args)-1] = found[1] + args[len(args)-1]
		listening.Add(1)
		go func() {
			defer listening.Done()
			code, stdout, stderr := runs(t, "", append(args, "--for", "2500ms")...)
			if code != 0 || !strings.HasPrefix(stdout, "demo://clock has changed\n") {
				t.Errorf("mcp %q: exit code %d\n%s%s", args, code, stdout, stderr)
			}
		}()
	}
	time.Sleep(1500 * time.Millisecond) // the clock has ticked
	start := time.Now()
	if code := end(); code != 0 || time.Since(start) > shutdownTime {
		t.Errorf("exit code %d after %v\n%s", code, time.Since(start), stderr)
	}
	listening.Wait()
}

func TestListenHTTP(t *testing.T) {
	for addr, want := range map[string]string{"0": "127.0.0.1:", ":0": "127.0.0.1:", "0.0.0.0:0": ""} {
		l, err := listenHTTP(addr)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		var b bytes.Buffer
		announce(&b, l, "MCP", "/mcp")
		if !strings.HasPrefix(l.Addr().String(), want) || strings.Contains(b.String(), "Anyone") != (want == "") {
			t.Errorf("%s: %s, %s", addr, l.Addr(), &b)
		}
	}
	l, err := listenHTTP("0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, addr := range []string{l.Addr().String(), "no such port"} {
		if code, _, stderr := runs(t, "", "demo", "--http", addr); code != 1 || !strings.HasPrefix(stderr, "mcp: listen tcp") {
			t.Errorf("%s: exit code %d, %s", addr, code, stderr)
		}
	}
}
