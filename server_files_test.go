package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fileServer serves the files of a folder with a secret beside it.
func fileServer(t *testing.T) (s *Server, dir string) {
	t.Helper()
	outer, err := os.MkdirTemp("", "mcp-files")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outer) }) // not t.TempDir, since not every Windows removes all at once
	dir = filepath.Join(outer, "root")
	for name, text := range map[string]string{
		"secret.txt": "SECRET", "root/a.html": "<p>", "root/sub/ä b.txt": "text", "root/..a": "dots", "root/binary": "\x00\x01", "root/latin.json": "\"\xe4\"",
		"root/typed": "typed", "root/empty.html": "",
	} {
		path := filepath.Join(outer, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOOS != "windows" { // where making links is a privilege, and not every name is a file's
		if err := os.WriteFile(filepath.Join(dir, "%2e%2e"), []byte("percent"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"out": "../secret.txt", "outside": "..", "absolute": "/etc/passwd", "in": "a.html"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s = emptyServer(nil)
	files := FileHandler(root, "file:///p")
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "file:///p/{+path}", Name: "files"}, files)
	s.AddResource(Resource{URI: "file:///p/typed", Name: "typed", MIMEType: "text/x-typed"}, files)
	s.AddResource(Resource{URI: "file:///p/../secret.txt", Name: "bad"}, files)
	s.AddResource(Resource{URI: "file:///q/a.html", Name: "other"}, files)
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test:///{+path}", Name: "any"}, FileHandler(root, "test:///"))
	return s, dir
}

func TestFilesAreReadAndNothingElse(t *testing.T) {
	shows(t, "resources.sec.traversal", "resources.text-only", "resources.sec.binary", "resources.error.not-found", "resources.error.no-empty")
	leakCheck(t)
	s, dir := fileServer(t)
	good := map[string]string{
		"file:///p/a.html":               `{"text":"<p>","mimeType":"text/html; charset=utf-8"}`,
		"file:///p/sub/%C3%A4%20b.txt":   `{"text":"text"}`,
		"file:///p/sub%2F%C3%A4%20b.txt": `{"text":"text"}`,
		"file:///p/..a":                  `{"text":"dots"}`,
		"file:///p/binary":               `{"blob":"AAE=","text":null}`,
		"file:///p/latin.json":           `{"blob":"IuQi","mimeType":"application/json"}`,
		"file:///p/typed":                `{"text":"typed","mimeType":"text/x-typed"}`,
		"file:///p/empty.html":           `{"text":""}`,
		"test:///a.html":                 `{"text":"<p>"}`,
	}
	if runtime.GOOS != "windows" {
		good["file:///p/%252e%252e"] = `{"text":"percent"}`
	}
	bad := []string{
		"file:///p/../secret.txt", "file:///p/%2e%2e/secret.txt", "file:///p/..%2fsecret.txt", "file:///p/sub/../../secret.txt", "file:///p/.%2e%2Fsecret.txt",
		"file:///p/..%5csecret.txt", `file:///p/..\secret.txt`, "file:///p/%c0%ae%c0%ae/secret.txt", "file:///p/a.html%00.txt", "file:///p/", "file:///p", "file:///p//etc/passwd",
		"file:///p/sub", "file:///p/none", "file:///p/.", "file:///p/./a.html", "file:///p/a.html/", "file:///q/a.html", "file:///secret.txt", "file:///p/%zz",
		"test:///../secret.txt", "test:///%2e%2e%2fsecret.txt", "test:////etc/passwd", "file:///p/" + strings.TrimPrefix(filepath.ToSlash(dir), "/"),
		"file:///p/out", "file:///p/outside/secret.txt", "file:///p/absolute", "file:///p/sub/../a.html",
	}
	if runtime.GOOS != "windows" {
		good["file:///p/in"] = `{"text":"<p>"}`
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		_, ask := opened(t, s, version, "{}")
		for uri, want := range good {
			fits(t, ask("1", "resources/read", `"uri":"`+uri+`"`), `{"result":{"contents":[`+want+`]}}`)
		}
		for _, uri := range bad {
			quoted, _ := json.Marshal(uri)
			got := ask("1", "resources/read", `"uri":`+string(quoted))
			fits(t, got, `{"error":{"code":-32602,"data":{"uri":`+string(quoted)+`}}}`)
			if strings.Contains(got, "SECRET") || t.Failed() {
				t.Fatalf("%s: %s", uri, got)
			}
		}
	}
}

// What is too large, or no regular file, does not hold the server up.
func TestFilesAreBounded(t *testing.T) {
	shows(t, "resources.error.internal")
	leakCheck(t)
	s, dir := fileServer(t)
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, maxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, ask := opened(t, s, "2026-07-28", "{}")
	fits(t, ask("1", "resources/read", `"uri":"file:///p/large"`), `{"error":{"code":-32603,"message":"internal error"}}`)
	if err := os.Truncate(filepath.Join(dir, "large"), 3); err != nil {
		t.Fatal(err)
	}
	fits(t, ask("1", "resources/read", `"uri":"file:///p/large"`), `{"result":{"contents":[{"blob":"AAAA"}]}}`)
}

// A variable of a file: template never stands for dots, whoever handles it.
func TestTemplatesOfFilesHaveNoDots(t *testing.T) {
	shows(t, "resources.sec.traversal")
	leakCheck(t)
	s := emptyServer(nil)
	for _, scheme := range []string{"file", "test"} {
		s.AddResourceTemplate(ResourceTemplate{URITemplate: scheme + ":///{dir}/{name}", Name: scheme}, func(_ context.Context, req *Request) (*ReadResourceResult, error) {
			return &ReadResourceResult{Contents: []ResourceContents{{Text: req.Vars["dir"] + "|" + req.Vars["name"]}}}, nil
		})
	}
	_, ask := opened(t, s, "2026-07-28", "{}")
	for _, path := range []string{"..%2f..", "%2e%2e%5c..", "..", "%2E%2e", ".", "a%2f..", "..%00"} {
		fits(t, ask("1", "resources/read", `"uri":"file:///`+path+`/x"`), `{"error":{"code":-32602}}`)
		fits(t, ask("1", "resources/read", `"uri":"file:///x/`+path+`"`), `{"error":{"code":-32602}}`)
	}
	fits(t, ask("1", "resources/read", `"uri":"file:///a%2fb/..c"`), `{"result":{"contents":[{"text":"a/b|..c"}]}}`)
	fits(t, ask("1", "resources/read", `"uri":"test:///..%2f../x"`), `{"result":{"contents":[{"text":"../..|x"}]}}`) // its handler's to judge
}

// What os.OpenRoot returns with an error is noticed at once, not by who reads.
func TestFileHandlerNeedsARoot(t *testing.T) {
	if got := refused(func() { FileHandler(nil, "file:///a/") }); got != "mcp: FileHandler: root is nil" {
		t.Errorf("panic: %q", got)
	}
}
