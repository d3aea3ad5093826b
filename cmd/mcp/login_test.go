package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A pageOpener is a user who opens the page that is printed, and agrees.
type pageOpener struct {
	t    *testing.T
	mu   sync.Mutex
	text bytes.Buffer
	done map[string]bool
}

var (
	printedPage = regexp.MustCompile(`(?m)^  (http\S+)$`)
	formToken   = regexp.MustCompile(`name="token" value="([^"]+)"`)
)

func (p *pageOpener) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	for _, m := range printedPage.FindAllStringSubmatch(p.text.String(), -1) {
		if !p.done[m[1]] {
			p.done[m[1]] = true
			go p.agree(m[1])
		}
	}
	return len(b), nil
}

func (p *pageOpener) agree(page string) {
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := browser.Get(page)
	if err != nil {
		p.t.Error(err)
		return
	}
	text, _ := io.ReadAll(response.Body)
	response.Body.Close()
	token := formToken.FindSubmatch(text)
	if token == nil {
		p.t.Errorf("no form: %s", text)
		return
	}
	response, err = browser.PostForm(page, url.Values{"token": {string(token[1])}, "answer": {"allow"}})
	if err != nil {
		p.t.Error(err)
		return
	}
	response.Body.Close()
}

func TestVerbsLogIn(t *testing.T) {
	config := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData", "home"} {
		t.Setenv(name, config)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer server.Close()
	handler, shutdown := protectedDemo(server.URL, demoServer(slog.New(slog.DiscardHandler), 0), slog.New(slog.DiscardHandler))
	defer shutdown(context.Background())
	at := server.URL + "/mcp"
	visit := func(args ...string) (code int, stdout, stderr string, pages int) {
		var out bytes.Buffer
		user := &pageOpener{t: t, done: make(map[string]bool)}
		code = run(context.Background(), args, strings.NewReader(""), &out, user)
		user.mu.Lock()
		defer user.mu.Unlock()
		return code, out.String(), user.text.String(), len(user.done)
	}
	code, stdout, stderr, pages := visit("tools", "--trace", at)
	if code != 0 || pages != 1 || !strings.Contains(stdout, "countdown") {
		t.Fatalf("exit code %d, %d pages\n%s%s", code, pages, stdout, stderr)
	}
	files, _ := filepath.Glob(filepath.Join(config, "*", "*tokens.json"))
	if more, _ := filepath.Glob(filepath.Join(config, "*", "*", "*tokens.json")); len(more) > 0 {
		files = more // on macOS
	}
	if len(files) != 1 {
		t.Fatalf("tokens in %v", files)
	}
	if info, err := os.Stat(files[0]); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if strings.Contains(stderr, "eyJ") || strings.Contains(stdout, "eyJ") { // how JWTs begin
		t.Errorf("a token is shown: %s%s", stdout, stderr)
	}
	if code, stdout, stderr, pages := visit("ping", at); code != 0 || pages != 0 {
		t.Errorf("with the token: exit code %d, %d pages\n%s%s", code, pages, stdout, stderr)
	}
	if code, _, stderr, pages := visit("ping", "--header", "Authorization: Bearer mine", at); code != 1 || pages != 0 {
		t.Errorf("with a token of the user's: exit code %d, %d pages\n%s", code, pages, stderr)
	}
	if code, stdout, stderr, _ := visit("logout", at); code != 0 || !strings.Contains(stdout, "forgotten") {
		t.Errorf("logout: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr, pages := visit("ping", at); code != 0 || pages != 1 {
		t.Errorf("after logout: exit code %d, %d pages\n%s%s", code, pages, stdout, stderr)
	}
	visit("logout")
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("after logout from all: %v", err)
	}
	if code, _, _, _ := visit("logout", "x", "y"); code != 2 {
		t.Errorf("exit code %d", code)
	}
	if code, _, stderr, _ := visit("demo", "--auth"); code != 2 || !strings.Contains(stderr, "--http") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
