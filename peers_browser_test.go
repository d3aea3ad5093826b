//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A pageServer serves the page of testdata/peers/page and gets its results.
type pageServer struct {
	*httptest.Server
	results           chan string
	preflights, asked atomic.Int64 // requests for the server beside the page
}

func (p *peers) newPageServer(t *testing.T, also *http.ServeMux) *pageServer {
	s := &pageServer{results: make(chan string, 1)}
	also.Handle("/", http.FileServer(http.Dir("testdata/peers/page")))
	also.Handle("/node_modules/", http.FileServer(http.Dir(p.npm)))
	also.HandleFunc("/result", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.results <- string(body)
	})
	s.Server = httptest.NewServer(also)
	t.Cleanup(s.Close)
	return s
}

// visit opens the page in a browser under a name that leads to this machine,
// and returns what the page reports.
func (s *pageServer) visit(t *testing.T, browser, name string, query url.Values) (results map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	profile, err := os.MkdirTemp("", "peers-browser-") // not t.TempDir, which must be empty at once
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(profile)
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+profile, "--enable-logging=stderr",
		"--remote-debugging-port=0", "--host-resolver-rules=MAP *.example 127.0.0.1", s.at(name)+"/?"+query.Encode())
	log := filepath.Join(t.TempDir(), "browser.log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it is many processes
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
		text, _ := os.ReadFile(log)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, ":CONSOLE") { // it says much else
				t.Log(line)
			}
		}
	}()
	began := time.Now()
	defer func() { t.Logf("%v as %s", time.Since(began).Round(time.Millisecond), name) }()
	select {
	case text := <-s.results:
		if err := json.Unmarshal([]byte(text), &results); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	case <-ctx.Done():
		t.Error("the page reports nothing")
	}
	return results
}

func (s *pageServer) at(name string) string {
	return strings.Replace(s.URL, "127.0.0.1", name, 1)
}

// serveBesidePage serves our server for pages of some origins, and the page.
func (p *peers) serveBesidePage(t *testing.T, origins ...string) *pageServer {
	h := NewHTTPHandler(httpFixture(), &HTTPOptions{Origins: origins})
	mux := http.NewServeMux()
	s := p.newPageServer(t, mux)
	count := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				s.preflights.Add(1)
			} else {
				s.asked.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}
	mux.Handle("/mcp", count(h))
	mux.Handle("/sse", count(h.SSE()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

var refusals = []string{"refused legacy", "refused modern", "refused sse"}

// TestPeersBrowser has a page of another origin use our server, in a browser:
// with the TypeScript SDK v2 and with fetch alone. A page whose origin is not
// allowed is refused, and one that has its own name lead to the server.
func TestPeersBrowser(t *testing.T) {
	shows(t, "http.origin.validate", "sse.origin")
	browser, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to have Chromium: ", err)
		}
		t.Skip("NO BROWSER WAS TRIED: Chromium is not installed: ", err)
	}
	p := installPeers(t)
	page := p.newPageServer(t, http.NewServeMux())
	allowing, refusing := p.serveBesidePage(t, page.at("app.example")), p.serveBesidePage(t, "https://other.example")

	got := page.visit(t, browser, "app.example", url.Values{"use": {allowing.URL}, "refused": {refusing.URL}})
	for name, want := range map[string]string{
		"sdk legacy":   `{"tools":["count","where"],"seen":[1,2,3],"text":"counted to 3","where":"Köln","session":true,"version":"2025-11-25"}`,
		"sdk modern":   `{"tools":["count","where"],"seen":[1,2,3],"text":"counted to 3","where":"the header Mcp-Param-Region is missing","session":false,"version":"2026-07-28"}`,
		"sdk sse":      `{"tools":["count","where"],"seen":[1],"text":"counted to 3","where":"Köln","version":"2025-11-25"}`,
		"fetch legacy": `{"session":true,"told":202,"text":"counted to 1","ended":204}`,
		"fetch modern": `{"status":200,"text":"north, told in a header, too"}`,
	} {
		wantResult(t, name, got[name], want)
	}
	for _, name := range refusals {
		wantResult(t, name, got[name], `"error: "`)
	}
	if allowing.preflights.Load() == 0 {
		t.Error("the browser asked for nothing first: was it another origin?")
	}
	if n := refusing.asked.Load(); n != 1 { // the GET of HTTP+SSE has no header that needs a preflight
		t.Errorf("%d requests of a page that is not allowed were sent, want 1", n)
	}

	// A page whose own name leads to the server is of its origin.
	got = allowing.visit(t, browser, "rebound.example", url.Values{"refused": {allowing.at("rebound.example")}})
	for _, name := range refusals {
		wantResult(t, name, got[name], `"error: "`)
	}
}

func wantResult(t *testing.T, name string, got any, text string) {
	t.Helper()
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if !includes(got, want) {
		t.Errorf("%s: %v, want %s", name, got, text)
	}
}
