//go:build go1.25 && !mcp_nohttp

package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// These tests are an HTTP client that knows nothing of this package.

// head makes headers of names and values in turn; "" leaves one out.
func head(pairs ...string) http.Header {
	header := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			header.Add(pairs[i], pairs[i+1])
		}
	}
	return header
}

// modernHead is what goes with a request of 2026-07-28, and more.
func modernHead(method, name string, more ...string) http.Header {
	return head(append([]string{"Mcp-Protocol-Version", Version20260728, "Mcp-Method", method, "Mcp-Name", name}, more...)...)
}

// do sends a request to a handler and returns what it answered in the end.
// A POST is JSON and accepts all, unless the headers say else.
func do(h http.Handler, method string, header http.Header, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
	return doRequest(h, r, header)
}

func doRequest(h http.Handler, r *http.Request, header http.Header) *httptest.ResponseRecorder {
	r.Header = head("Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// openHTTP opens a session and returns its id.
func openHTTP(t *testing.T, h http.Handler, version, capabilities string) string {
	t.Helper()
	w := do(h, "POST", nil, initializeFrame("0", version, capabilities))
	if w.Code != 200 {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	fits(t, w.Body.String(), `{"id":0,"result":{"protocolVersion":"`+version+`"}}`)
	id := w.Header().Get("Mcp-Session-Id")
	if w := do(h, "POST", head("Mcp-Session-Id", id), `{"jsonrpc":"2.0","method":"notifications/initialized"}`); w.Code != 202 || w.Body.Len() > 0 {
		t.Fatalf("notifications/initialized: %d %s", w.Code, w.Body)
	}
	return id
}

// endHTTP ends a handler and checks that nothing is left of it.
func endHTTP(t *testing.T, h *HTTPHandler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions)+len(h.live)+h.opening > 0 {
		t.Errorf("left: %d sessions, %d served, %d opening", len(h.sessions), len(h.live), h.opening)
	}
	m := h.opts.Events.(*memoryEvents)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sessions) > 0 || m.size != 0 {
		t.Errorf("events of %d sessions are left, %d bytes", len(m.sessions), m.size)
	}
}

// httpEcho is a server with tools that say what they see.
func httpEcho(opts *ServerOptions) *Server {
	s := emptyServer(opts)
	rawTool(s, "echo", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s", req.Arguments), nil
	})
	rawTool(s, "progress", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		if err := req.Progress(ctx, ProgressParams{Progress: 1}); err != nil {
			return nil, err
		}
		return textResult("done"), nil
	})
	rawTool(s, "ask", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		a, err := req.Elicit(ctx, "k", &ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		if err != nil {
			return nil, err
		}
		return textResult("%s", a.Action), nil
	})
	return s
}

func callFrame(id, tool string) string {
	return request(id, "tools/call", `"name":"`+tool+`","arguments":{},"_meta":{"progressToken":`+id+`}`)
}

// TestHTTPTable is the table of what a POST means, row by row.
func TestHTTPTable(t *testing.T) {
	shows(t, "http.endpoint.post", "http.header.version-mismatch", "http.header.version-unsupported", "http.header.version-absent-reject", "http.header.version-absent-lenient",
		"http.header.version-invalid", "http.header.none-2025-03", "meta.request.missing-400", "meta.request.missing-32602", "version.matrix.legacy-http", "http.post.notif-202", "http.post.notif-error",
		"http.compat.session-ignored", "http.compat.last-event-id-ignored", "http.header.notification-lenient", "http.session.missing-400", "meta.request.client-info-optional")
	const list = `"jsonrpc":"2.0","id":1,"method":"tools/list"`
	meta := func(members string) string { return `{` + list + `,"params":{"_meta":{` + members + `}}}` }
	const caps, version = `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/protocolVersion":`
	modern, future := meta(caps+`,`+version+`"2026-07-28"`), meta(caps+`,`+version+`"2099-01-01"`)
	old, plain := meta(caps+`,`+version+`"2025-11-25"`), `{`+list+`}`
	note, answer := `{"jsonrpc":"2.0","method":"notifications/x"}`, `{"jsonrpc":"2.0","id":4,"result":{}}`
	both, onlyNew, onlyOld := []string(nil), []string{Version20260728}, []string{Version20250618, Version20251125}
	mismatch, missing := `{"id":1,"error":{"code":-32020}}`, `{"id":1,"error":{"code":-32602}}`
	unsupported := func(requested string) string {
		return `{"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"` + requested + `"}}}`
	}
	for _, c := range []struct {
		name     string
		versions []string
		header   string
		body     string
		session  bool
		status   int
		want     string
	}{
		{"modern, equal", both, "2026-07-28", modern, false, 200, `{"id":1,"result":{"tools":[{},{},{}],"resultType":"complete"}}`},
		{"modern, with what went before", both, "2026-07-28", modern, true, 200, `{"id":1,"result":{"resultType":"complete"}}`},
		{"modern, unsupported", both, "2099-01-01", future, false, 400, unsupported("2099-01-01")},
		{"modern, no header", both, "", modern, false, 400, mismatch},
		{"modern, no header, modern server", onlyNew, "", modern, false, 400, mismatch},
		{"modern, header of before", both, "2025-11-25", modern, false, 400, mismatch},
		{"modern, another header", both, "2099-01-01", modern, false, 400, mismatch},
		{"modern body of another, header of now", both, "2026-07-28", future, false, 400, mismatch},
		{"body of before, header of now", both, "2026-07-28", old, false, 400, mismatch},
		{"no _meta", both, "2026-07-28", plain, false, 400, missing},
		{"no version", both, "2026-07-28", meta(caps), false, 400, missing},
		{"no capabilities", both, "2026-07-28", meta(version + `"2026-07-28"`), false, 400, missing},
		{"a version that is no string", both, "2026-07-28", meta(caps + `,` + version + `1`), false, 400, missing},
		{"params that are none", both, "2026-07-28", `{` + list + `,"params":1}`, false, 400, missing},
		{"unknown header", both, "1999-01-01", plain, false, 400, unsupported("1999-01-01")},
		{"unknown header in a session", both, "1999-01-01", plain, true, 400, unsupported("1999-01-01")},
		{"garbage", both, "newest", plain, true, 400, unsupported("newest")},
		{"of before, no session", both, "", plain, false, 400, `{"id":1,"error":{"code":-32600}}`},
		{"of before, no header", both, "", plain, true, 200, `{"id":1,"result":{"tools":[{},{},{}],"resultType":null}}`},
		{"of before, with the header", both, "2025-11-25", plain, true, 200, `{"id":1,"result":{}}`},
		{"of before, bad params", both, "2025-11-25", `{` + list + `,"params":1}`, true, 200, missing},
		{"initialize with a modern header", both, "2026-07-28", initializeFrame("1", "2025-11-25", "{}"), false, 404, `{"id":1,"error":{"code":-32601}}`},
		{"modern-only: initialize", onlyNew, "", initializeFrame("1", "2025-11-25", "{}"), false, 400, mismatch},
		{"modern-only: request of before", onlyNew, "2025-11-25", plain, false, 400, unsupported("2025-11-25")},
		{"modern-only: both of before", onlyNew, "2025-11-25", old, false, 400, unsupported("2025-11-25")},
		{"modern-only: batch", onlyNew, "", `[` + plain + `]`, false, 400, `{"error":{"code":-32020}}`},
		{"older only: modern", onlyOld, "2026-07-28", modern, false, 400, `{"id":1,"error":{"code":-32600,"message":"Unsupported protocol version"}}`},
		{"older only: modern header", onlyOld, "2026-07-28", plain, true, 400, `{"error":{"code":-32600,"message":"Unsupported protocol version"}}`},
		{"older only: a version it leaves out", onlyOld, "2025-03-26", plain, true, 400, `{"error":{"code":-32600}}`},
		{"modern notification", both, "2026-07-28", note, false, 202, ``},
		{"unsupported notification", both, "2099-01-01", note, false, 400, unsupported("2099-01-01")},
		{"modern response", both, "2026-07-28", answer, false, 400, `{"error":{"code":-32600}}`},
		{"notification", both, "", note, true, 202, ``},
		{"response", both, "2025-11-25", answer, true, 202, ``},
		{"response that is an error", both, "", `{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":""}}`, true, 202, ``},
		{"response that is neither", both, "", `{"jsonrpc":"2.0","id":4}`, true, 400, `{"error":{"code":-32600}}`},
		{"notification without a session", both, "", note, false, 400, `{"error":{"code":-32600}}`},
		{"response without a session", both, "", answer, false, 400, `{"error":{"code":-32600}}`},
		{"no JSON", both, "", `{`, true, 400, `{"error":{"code":-32700}}`},
		{"no JSON, modern", both, "2026-07-28", `{`, false, 400, `{"error":{"code":-32700}}`},
		{"no message", both, "2026-07-28", `{"jsonrpc":"2.0","id":1}`, false, 400, `{"error":{"code":-32600}}`},
		{"batch", both, "2025-11-25", `[` + plain + `]`, true, 400, `{"error":{"code":-32600}}`},
		{"batch, modern", both, "2026-07-28", `[` + plain + `]`, false, 400, `{"error":{"code":-32600}}`},
		{"batch, unknown version", both, "2099-01-01", `[` + plain + `]`, true, 400, unsupported("2099-01-01")},
		{"nothing", both, "2026-07-28", ``, false, 400, `{"error":{"code":-32700}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := NewHTTPHandler(httpEcho(&ServerOptions{Versions: c.versions}), nil)
			header := head("Mcp-Protocol-Version", c.header, "Mcp-Method", "tools/list", "Last-Event-Id", "g1-1")
			if c.session {
				header.Set("Mcp-Session-Id", openHTTP(t, h, Version20251125, "{}"))
			}
			w := do(h, "POST", header, c.body)
			if w.Code != c.status {
				t.Errorf("status %d", w.Code)
			}
			if c.want == "" && w.Body.Len() > 0 {
				t.Errorf("body %s", w.Body)
			} else if c.want != "" {
				fits(t, w.Body.String(), c.want)
				if got := w.Header().Get("Content-Type"); got != "application/json" {
					t.Errorf("Content-Type %q", got)
				}
			}
			if w.Header()["Mcp-Session-Id"] != nil {
				t.Error("a session was opened")
			}
			endHTTP(t, h)
		})
	}
	for name, value := range map[string][]string{"twice": {Version20260728, Version20260728}, "two": {Version20260728, Version20251125}} {
		h := NewHTTPHandler(httpEcho(nil), nil)
		if w := do(h, "POST", http.Header{"Mcp-Protocol-Version": value, "Mcp-Method": {"tools/list"}}, modern); w.Code != 400 {
			t.Errorf("%s: %d", name, w.Code)
		} else {
			fits(t, w.Body.String(), mismatch)
		}
	}
}

// TestHTTPStatus checks the status of errors before a stream begins, and that
// a session answers all with 200.
func TestHTTPStatus(t *testing.T) {
	shows(t, "http.method-not-found-404", "meta.caps.missing-400", "meta.caps.missing-error", "http.post.request-content-type")
	s := httpEcho(nil)
	codes := map[string]int{}
	for code, status := range map[int]int{-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404, -32603: 200, -32002: 200, 7: 200} {
		name := fmt.Sprint("e", code)
		codes[name] = status
		rawTool(s, name, func(context.Context, *Request) (*CallToolResult, error) { return nil, Errorf(code, "as ordered") })
	}
	rawTool(s, "panics", func(context.Context, *Request) (*CallToolResult, error) { panic("secret") })
	rawTool(s, "exits", func(context.Context, *Request) (*CallToolResult, error) { runtime.Goexit(); return nil, nil })
	codes["panics"] = 200
	h := NewHTTPHandler(s, nil)
	defer endHTTP(t, h)
	session := head("Mcp-Session-Id", openHTTP(t, h, Version20250618, "{}"))
	for name, status := range codes {
		w := do(h, "POST", modernHead("tools/call", name), modernRequest("1", "tools/call", `"name":"`+name+`"`, "{}"))
		if w.Code != status || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w := do(h, "POST", session, callFrame("1", name)); w.Code != 200 || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s in a session: %d %s", name, w.Code, w.Body)
		}
	}
	for method, want := range map[string]string{
		"foo/bar": `-32601`, "ping": `-32601`, "logging/setLevel": `-32601`, "resources/subscribe": `-32601`, "initialize": `-32601`, "server/discover": "",
	} {
		w := do(h, "POST", modernHead(method, ""), modernRequest("1", method, "", "{}"))
		if status := map[bool]int{true: 404, false: 200}[want != ""]; w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	w := do(h, "POST", modernHead("tools/call", "ask"), modernRequest("1", "tools/call", `"name":"ask"`, "{}"))
	if fits(t, w.Body.String(), `{"error":{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{}}}}}`); w.Code != 400 {
		t.Errorf("a capability is missing: %d", w.Code)
	}
	gone := make(chan struct{}) // the goroutine of net/http is the handler's at 2026-07-28
	go func() {
		defer close(gone)
		w = do(h, "POST", modernHead("tools/call", "exits"), modernRequest("1", "tools/call", `"name":"exits"`, "{}"))
	}()
	soon(t, "the end", gone)
}

func TestHTTPMethods(t *testing.T) {
	shows(t, "http.compat.get-delete-405", "http.endpoint.post-get", "http.get.sse-or-405")
	for _, c := range []struct {
		what    string
		opts    *HTTPOptions
		server  *ServerOptions
		version string
		methods string
		allow   string
	}{
		{"both", nil, nil, "", "PUT PATCH HEAD", "GET, POST, DELETE"},
		{"both, no origin", nil, nil, "", "OPTIONS", "GET, POST, DELETE"},
		{"modern header", nil, nil, Version20260728, "GET DELETE PUT", "POST"},
		{"stateless", &HTTPOptions{Stateless: true}, nil, "", "GET DELETE PUT", "POST"},
		{"modern only", nil, &ServerOptions{Versions: []string{Version20260728}}, "", "GET DELETE PUT", "POST"},
	} {
		h := NewHTTPHandler(httpEcho(c.server), c.opts)
		for method := range strings.FieldsSeq(c.methods) {
			w := do(h, method, head("Mcp-Protocol-Version", c.version, "Mcp-Session-Id", "x"), "")
			if w.Code != 405 || w.Header().Get("Allow") != c.allow || w.Header()["Mcp-Session-Id"] != nil {
				t.Errorf("%s: %s: %d, Allow %q", c.what, method, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestHTTPContentTypes(t *testing.T) {
	h := NewHTTPHandler(httpEcho(nil), nil)
	body := modernRequest("1", "tools/list", "", "{}")
	for value, status := range map[string]int{
		"application/json": 200, `Application/JSON; charset="UTF-8"`: 200, "application/json;charset=us-ascii": 200, "application/json ; x=y": 200,
		"": 415, "text/plain": 415, "text/plain; x=application/json": 415, "application/json-patch+json": 415, "application/json, text/plain": 415,
		"application/json; charset=utf-16": 415, "application/x-www-form-urlencoded": 415, "json": 415,
	} {
		header := modernHead("tools/list", "")
		header["Content-Type"] = []string{value}
		if w := do(h, "POST", header, body); w.Code != status {
			t.Errorf("Content-Type %q: %d", value, w.Code)
		}
	}
	const stream, object = "text/event-stream", "application/json"
	for _, c := range []struct {
		values []string
		status int
		typ    string
	}{
		{nil, 200, object},
		{[]string{"application/json, text/event-stream"}, 200, object},
		{[]string{"text/event-stream;q=0.9, application/json;q=1"}, 200, object},
		{[]string{"*/*"}, 200, object},
		{[]string{"application/*, text/*"}, 200, object},
		{[]string{"application/json", "text/event-stream"}, 200, object},
		{[]string{"Application/JSON;v=1"}, 200, object},
		{[]string{"text/event-stream"}, 200, stream},
		{[]string{"*/*, application/json;q=0"}, 200, stream},
		{[]string{"application/json;q=0.0, text/*"}, 200, stream},
		{[]string{"application/*;q=0, application/json"}, 200, object},
		{[]string{"text/event-stream;q=0, */*;q=0.1"}, 200, object},
		{[]string{"text/html"}, 406, object},
		{[]string{"application/jsonx, xtext/event-stream"}, 406, object},
		{[]string{"*/*;q=0"}, 406, object},
		{[]string{""}, 406, object},
	} {
		header := modernHead("tools/list", "")
		header["Accept"] = c.values
		if w := do(h, "POST", header, body); w.Code != c.status || w.Header().Get("Content-Type") != c.typ {
			t.Errorf("Accept %q: %d %s", c.values, w.Code, w.Header())
		}
	}
	id := openHTTP(t, h, Version20251125, "{}")
	for _, accept := range []string{"application/json", "text/html", "text/event-stream;q=0"} {
		if w := do(h, "GET", head("Mcp-Session-Id", id, "Accept", accept), ""); w.Code != 406 {
			t.Errorf("GET with Accept %q: %d", accept, w.Code)
		}
	}
	endHTTP(t, h)
}

// TestHTTPNames checks Mcp-Method and Mcp-Name.
func TestHTTPNames(t *testing.T) {
	shows(t, "http.header.missing", "http.header.validate", "http.header.value-case", "http.header.case", "http.header.decode", "http.header.error",
		"http.header.invalid-chars", "http.param.base64-marker")
	s := httpEcho(nil)
	s.AddResourceTemplate(ResourceTemplate{Name: "any", URITemplate: "{+any}"}, func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{URI: req.Name, Text: "found"}}}, nil
	})
	h := NewHTTPHandler(s, nil)
	encoded := func(text string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=" }
	long := strings.Repeat("x", 8<<10)
	for _, c := range []struct {
		uri    string
		header []string
		ok     bool
	}{
		{"a:b", []string{"a:b"}, true},
		{"a:b", nil, false},
		{"a:b", []string{"a:B"}, false},
		{"a:b", []string{"a:b", "a:b"}, false},
		{"a:b", []string{""}, false},
		{"a:b", []string{encoded("a:b")}, true},
		{"a:b", []string{"=?base64?YTpi"}, false},
		{"a:b", []string{"=?BASE64?YTpi?="}, false},
		{"=?BASE64?YTpi?=", []string{"=?BASE64?YTpi?="}, true},
		{"a:b", []string{"=?base64?YTpi=?="}, false},
		{"a:b", []string{"=?base64?!?="}, false},
		{"a:?", []string{"=?base64?YTo_?="}, false}, // the alphabet of URLs is another
		{"a:b", []string{"=?base64?YTpj?="}, false},
		{"na:ïve", []string{encoded("na:ïve")}, true},
		{"na:ïve", []string{"na:ïve"}, false},
		{"a:\\u0001", []string{"a:\x01"}, false},
		{"a:\x7f", []string{"a:\x7f"}, false},
		{" padded ", []string{encoded(" padded ")}, true},
		{"a\\tb", []string{"a\tb"}, true},
		{"=?base64?QUJD?=", []string{encoded("=?base64?QUJD?=")}, true},
		{"=?base64?QUJD?=", []string{"=?base64?QUJD?="}, false},
		{long, []string{long}, true},
		{"", []string{""}, true},
	} {
		header := modernHead("resources/read", "")
		header["Mcp-Name"] = c.header
		w := do(h, "POST", header, modernRequest("1", "resources/read", `"uri":"`+c.uri+`"`, "{}"))
		refused := strings.Contains(w.Body.String(), `"code":-32020`)
		if refused == c.ok || refused && w.Code != 400 {
			t.Errorf("uri %.30q, Mcp-Name %.50q: %d %.200s", c.uri, c.header, w.Code, w.Body)
		}
	}
	for _, c := range []struct {
		method []string
		ok     bool
	}{{[]string{"tools/list"}, true}, {nil, false}, {[]string{"Tools/List"}, false}, {[]string{"tools/call"}, false}, {[]string{"tools/list", "tools/list"}, false}, {[]string{encoded("tools/list")}, false}} {
		header := modernHead("", "")
		header["Mcp-Method"] = c.method
		if w := do(h, "POST", header, modernRequest("1", "tools/list", "", "{}")); (w.Code == 200) != c.ok || !c.ok && w.Code != 400 {
			t.Errorf("Mcp-Method %q: %d %s", c.method, w.Code, w.Body)
		}
	}
	for method, name := range map[string]string{"tools/call": `"name":"echo"`, "prompts/get": `"name":"p"`, "resources/read": `"uri":"u"`} {
		w := do(h, "POST", modernHead(method, ""), modernRequest("1", method, name, "{}"))
		if fits(t, w.Body.String(), `{"id":1,"error":{"code":-32020}}`); w.Code != 400 {
			t.Errorf("%s without Mcp-Name: %d", method, w.Code)
		}
		if method == "prompts/get" {
			continue // the server has none
		}
		w = do(h, "POST", modernHead(method, ""), modernRequest("1", method, "", "{}"))
		if fits(t, w.Body.String(), `{"id":1,"error":{"code":-32602}}`); w.Code != 400 {
			t.Errorf("%s without a name: %d", method, w.Code)
		}
	}
	// Names of headers are read by net/http, whatever their case.
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := modernRequest("1", "tools/call", `"name":"echo"`, "{}")
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\ncontent-type: application/json\r\nMCP-PROTOCOL-VERSION:2026-07-28\r\nmcp-method: tools/call\r\nMCP-NAME: \t echo \r\ncontent-length: %d\r\n\r\n%s", len(body), body)
	if got, _ := io.ReadAll(conn); !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
		t.Errorf("%s", got)
	}
}

// TestHTTPParams checks the headers that repeat a tool's arguments.
func TestHTTPParams(t *testing.T) {
	shows(t, "http.param.match", "http.param.missing-reject", "http.param.not-expected", "http.param.integer-compare", "http.param.safe-integer", "http.param.invalid-chars",
		"http.param.unrecognised", "http.param.static-path", "http.header.decode")
	s := httpEcho(nil)
	s.AddTool(Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B-b"},
		"d":{"type":"string","default":"x","x-mcp-header":"D"},
		"o":{"type":"object","properties":{"in":{"type":"string","x-mcp-header":"In"}}}}}`)},
		func(context.Context, *Request) (*CallToolResult, error) { return textResult("ran"), nil })
	h := NewHTTPHandler(s, nil)
	for _, c := range []struct {
		args   string
		header string // one line
		ok     bool
	}{
		{`{}`, "", true},
		{`{"s":null,"n":null}`, "", true},
		{`{"s":"a"}`, "S: a", true},
		{`{"s":"a"}`, "s: a", true},
		{`{"s":"a"}`, "", false},
		{`{"s":"a"}`, "S: A", false},
		{`{"s":"a"}`, "S: a|S: a", false},
		{`{}`, "S: a", false},
		{`{"s":null}`, "S: null", false},
		{`{"s":""}`, "S: ", true},
		{`{"s":"ü"}`, "S: =?base64?w7w=?=", true},
		{`{"s":"ü"}`, "S: ü", false},
		{`{"s":"ü"}`, "S: =?base64?w7w?=", false},
		{`{"s":"a\nb"}`, "S: =?base64?YQpi?=", true},
		{`{"s":"=?base64?QUJD?="}`, "S: =?base64?QUJD?=", false},
		{`{"s":"=?BASE64?QUJD?="}`, "S: =?BASE64?QUJD?=", true},
		{`{"n":42}`, "N: 42", true},
		{`{"n":42}`, "N: 42.0", true},
		{`{"n":42}`, "N: 4.2e1", true},
		{`{"n":42.0}`, "N: 42", true},
		{`{"n":42}`, "N: 43", false},
		{`{"n":42}`, "N: +42", false},
		{`{"n":42}`, "N: 0x2a", false},
		{`{"n":42}`, "N: x", false},
		{`{"n":42}`, "N: 1e999", false},
		{`{"n":0}`, "N: -0", true},
		{`{"n":9007199254740991}`, "N: 9007199254740991", true},
		{`{"n":-9007199254740991}`, "N: -9007199254740991", true},
		{`{"n":9007199254740992}`, "N: 9007199254740992", false},
		{`{"n":9007199254740992}`, "N: 9007199254740993", false},
		{`{"n":9007199254740991}`, "N: 9007199254740992", false},
		{`{"b":false}`, "B-B: false", true},
		{`{"b":true}`, "B-B: True", false},
		{`{"b":true}`, "B-B: 1", false},
		{`{"o":{"in":"a"}}`, "In: a", true},
		{`{"o":{"in":"a"}}`, "", false},
		{`{"o":{}}`, "In: a", false},
		{`{}`, "Foo: what ü ever", true},
	} {
		header := modernHead("tools/call", "t")
		if c.header != "" {
			for line := range strings.SplitSeq(c.header, "|") {
				name, value, _ := strings.Cut(line, ": ")
				header.Add("Mcp-Param-"+name, value)
			}
		}
		w := do(h, "POST", header, modernRequest("1", "tools/call", `"name":"t","arguments":`+c.args, "{}"))
		if c.ok && strings.Contains(c.args, "null") { // the headers are fine; the schema has no null
			fits(t, w.Body.String(), `{"id":1,"result":{"isError":true}}`)
		} else if c.ok {
			fits(t, w.Body.String(), `{"id":1,"result":{"content":[{"text":"ran"}]}}`)
		} else {
			fits(t, w.Body.String(), `{"id":1,"error":{"code":-32020}}`)
		}
		if (w.Code == 200) != c.ok || !c.ok && w.Code != 400 {
			t.Errorf("%s with %q: %d", c.args, c.header, w.Code)
		}
	}
	// A session knows nothing of such headers.
	id := openHTTP(t, h, Version20251125, "{}")
	w := do(h, "POST", head("Mcp-Session-Id", id, "Mcp-Param-S", "x"), request("1", "tools/call", `"name":"t","arguments":{"s":"a"}`))
	fits(t, w.Body.String(), `{"id":1,"result":{}}`)
	endHTTP(t, h)
}

// TestHTTPParamMarks checks which marks a tool may have.
func TestHTTPParamMarks(t *testing.T) {
	shows(t, "http.param.name.nonempty", "http.param.name.token", "http.param.name.no-control", "http.param.name.unique", "http.param.no-dynamic-path", "http.param.primitive",
		"http.param.static-path")
	const mark = `"x-mcp-header":"A"`
	for schema, ok := range map[string]bool{
		`{"properties":{"a":{"type":"string",` + mark + `}}}`:                                                                                 true,
		`{"properties":{"a":{"type":"integer",` + mark + `}}}`:                                                                                true,
		`{"properties":{"a":{"type":"boolean",` + mark + `}}}`:                                                                                true,
		`{"properties":{"a":{"properties":{"b":{"type":"string",` + mark + `}}}}}`:                                                            true,
		`{"properties":{"items":{"type":"string",` + mark + `}}}`:                                                                             true,
		`{"properties":{"x-mcp-header":{"type":"string"}}}`:                                                                                   true,
		`{"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"}}}}`:                                                               true,
		`{"properties":{"a":{"type":"number",` + mark + `}}}`:                                                                                 false,
		`{"properties":{"a":{"type":"object",` + mark + `}}}`:                                                                                 false,
		`{"properties":{"a":{"type":"array",` + mark + `}}}`:                                                                                  false,
		`{"properties":{"a":{"type":["string","null"],` + mark + `}}}`:                                                                        false,
		`{"properties":{"a":{` + mark + `}}}`:                                                                                                 false,
		`{` + mark + `}`:                                                                                                                      false,
		`{"properties":{"a":{"items":{"type":"string",` + mark + `}}}}`:                                                                       false,
		`{"properties":{"a":{"prefixItems":[{"type":"string",` + mark + `}]}}}`:                                                               false,
		`{"properties":{"a":{"contains":{"type":"string",` + mark + `}}}}`:                                                                    false,
		`{"oneOf":[{"properties":{"a":{"type":"string",` + mark + `}}}]}`:                                                                     false,
		`{"allOf":[{"properties":{"a":{"type":"string",` + mark + `}}}]}`:                                                                     false,
		`{"if":{"properties":{"a":{"type":"string",` + mark + `}}}}`:                                                                          false,
		`{"not":{"properties":{"a":{"type":"string",` + mark + `}}}}`:                                                                         false,
		`{"patternProperties":{"a":{"type":"string",` + mark + `}}}`:                                                                          false,
		`{"additionalProperties":{"type":"string",` + mark + `}}`:                                                                             false,
		`{"dependentSchemas":{"a":{"properties":{"a":{"type":"string",` + mark + `}}}}}`:                                                      false,
		`{"$defs":{"d":{"type":"string",` + mark + `}},"properties":{"a":{"$ref":"#/$defs/d"}}}`:                                              false,
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                            false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`:                                                                         false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a:b"}}}`:                                                                         false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a/b"}}}`:                                                                         false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"ü"}}}`:                                                                           false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}`:                                                                      false,
		`{"properties":{"a":{"type":"string","x-mcp-header":1}}}`:                                                                             false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}}}`:                        false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`:             false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"!#$%&'*+-.^_~"}}}}}`: true,
	} {
		func() {
			defer func() {
				if p := recover(); (p == nil) != ok {
					t.Errorf("%s: %v", schema, p)
				}
			}()
			emptyServer(nil).AddTool(Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object",` + schema[1:])},
				func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
		}()
	}
}

// TestHTTPGuard checks who may reach a handler, on a loopback address and
// elsewhere, over both transports.
func TestHTTPGuard(t *testing.T) {
	shows(t, "http.origin.validate", "http.origin.reject-403", "sse.origin")
	opts := &HTTPOptions{Origins: []string{"https://app.example.com"}, Hosts: []string{"proxy.example.com", "other.example.com:8443"}}
	h := NewHTTPHandler(httpEcho(nil), opts)
	open := NewHTTPHandler(httpEcho(nil), &HTTPOptions{Origins: []string{"*"}})
	for _, c := range []struct {
		h            *HTTPHandler
		local        bool
		host, origin string
		ok           bool
	}{
		{h, true, "evil.example", "", false},
		{h, true, "localhost.evil.example", "", false},
		{h, true, "127.0.0.1.evil.example", "", false},
		{h, true, "evil.example:8080", "", false},
		{h, true, "", "", false},
		{h, true, "localhost", "", true},
		{h, true, "LocalHost:8080", "", true},
		{h, true, "127.0.0.1", "", true},
		{h, true, "127.8.8.8:1", "", true},
		{h, true, "[::1]:8080", "", true},
		{h, true, "[::1]", "", true},
		{h, true, "192.168.0.1", "", false},
		{h, true, "proxy.example.com", "", true},
		{h, true, "PROXY.example.com:99", "", true},
		{h, true, "other.example.com:8443", "", true},
		{h, true, "other.example.com", "", false},
		{h, false, "anything.example", "", true},
		{h, true, "localhost:8080", "http://localhost:3000", true},
		{h, true, "localhost:8080", "http://[::1]:3000", true},
		{h, true, "localhost:8080", "http://evil.example", false},
		{h, true, "localhost:8080", "http://localhost.evil.example", false},
		{h, true, "localhost:8080", "null", false},
		{h, true, "localhost:8080", "file://", false},
		{h, true, "localhost:8080", "chrome-extension://localhost", false},
		{h, true, "evil.example", "http://evil.example", false},
		{h, true, "localhost:8080", "https://app.example.com", true},
		{h, true, "localhost:8080", "https://app.example.com.evil.example", false},
		{h, true, "localhost:8080", "http://app.example.com", false},
		{h, true, "proxy.example.com", "https://proxy.example.com", true},
		{h, false, "api.example.com", "https://api.example.com", true},
		{h, false, "api.example.com:443", "https://api.example.com", true},
		{h, false, "api.example.com", "https://api.example.com:8443", false},
		{h, false, "api.example.com", "http://localhost:3000", false},
		{h, false, "api.example.com", "null", false},
		{h, false, "api.example.com", "http://evil.example", false},
		{h, false, "api.example.com", "https://app.example.com, http://evil.example", false},
		{open, false, "api.example.com", "http://evil.example", true},
		{open, true, "evil.example", "http://evil.example", false},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			for name, handler := range map[string]http.Handler{"MCP": c.h, "SSE": c.h.SSE()} {
				r := httptest.NewRequest(method, "/mcp", nil)
				r.Host = c.host
				if c.local {
					r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}))
				}
				header := head("Accept", "x/y") // so that what is let in goes no further
				if c.origin != "" {
					header["Origin"] = strings.Split(c.origin, ", ")
				}
				w := doRequest(handler, r, header)
				if (w.Code != 403) != c.ok {
					t.Errorf("%s %s %s, local %v, Host %q, Origin %q: %d", name, method, w.Header(), c.local, c.host, c.origin, w.Code)
				}
				if !c.ok && w.Header()["Access-Control-Allow-Origin"] != nil {
					t.Errorf("Origin %q: CORS headers %v", c.origin, w.Header())
				}
			}
		}
	}
}

func TestHTTPPreflight(t *testing.T) {
	h := NewHTTPHandler(httpEcho(nil), &HTTPOptions{Origins: []string{"https://app.example.com"}})
	for _, c := range []struct {
		origin, asked, wanted string
		status                int
		allowed               string
	}{
		{"https://app.example.com", "POST", "content-type, Mcp-Protocol-Version,mcp-session-id,MCP-Param-Region,x-other,mcp-(,authorization", 204,
			"content-type, mcp-protocol-version, mcp-session-id, mcp-param-region, authorization"},
		{"https://app.example.com", "DELETE", "", 204, ""},
		{"https://app.example.com", "", "", 405, ""},
		{"https://evil.example", "POST", "content-type", 403, ""},
		{"http://example.com", "POST", "content-type", 405, ""}, // its own pages ask for nothing
		{"", "POST", "content-type", 405, ""},
	} {
		w := do(h, "OPTIONS", head("Origin", c.origin, "Access-Control-Request-Method", c.asked, "Access-Control-Request-Headers", c.wanted), "")
		if w.Code != c.status || w.Header().Get("Access-Control-Allow-Headers") != c.allowed || w.Body.Len() > 0 && c.status == 204 {
			t.Errorf("%s %s: %d %v", c.origin, c.asked, w.Code, w.Header())
		}
		if c.status == 204 && (w.Header().Get("Access-Control-Allow-Origin") != c.origin || w.Header().Get("Access-Control-Allow-Methods") != "GET, POST, DELETE" ||
			!slices.Contains(w.Header()["Vary"], "Origin")) {
			t.Errorf("%s %s: %v", c.origin, c.asked, w.Header())
		}
	}
	w := do(h, "POST", head("Origin", "https://app.example.com"), initializeFrame("1", Version20251125, "{}"))
	if got := w.Header().Get("Access-Control-Expose-Headers"); !strings.Contains(got, "Mcp-Session-Id") || w.Header().Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%v", w.Header())
	}
	endHTTP(t, h)
}

// endless is a body that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestHTTPBodies(t *testing.T) {
	h := NewHTTPHandler(httpEcho(nil), &HTTPOptions{MaxBody: 64 << 10})
	defer endHTTP(t, h)
	header := modernHead("tools/list", "")
	fit := modernRequest("1", "tools/list", "", "{}")
	exact := fit + strings.Repeat(" ", 64<<10-len(fit))
	for _, c := range []struct {
		name   string
		body   string
		status int
		code   string
	}{
		{"that fits", exact, 200, `"result"`},
		{"a byte more", exact + " ", 413, "-32600"},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, 400, "-32"},
		{"not UTF-8", strings.Replace(fit, "tools", "t\xff", 1), 400, "-32700"},
		{"members twice", strings.Replace(fit, `"id":1`, `"id":1,"id":2`, 1), 400, "-32600"},
	} {
		if w := do(h, "POST", header, c.body); w.Code != c.status || !strings.Contains(w.Body.String(), c.code) {
			t.Errorf("%s: %d %.200s", c.name, w.Code, w.Body)
		}
	}
	for name, length := range map[string]int64{"announced": 5 << 30, "chunked": -1} {
		body := new(endless)
		r := httptest.NewRequest("POST", "/mcp", body)
		r.ContentLength = length
		if w := doRequest(h, r, header); w.Code != 413 || body.read > 128<<10 {
			t.Errorf("%s: %d after %d bytes", name, w.Code, body.read)
		}
	}
	for _, handler := range []http.Handler{h, h.SSE()} {
		if handler != http.Handler(h) {
			continue
		}
		r := httptest.NewRequest("POST", "/mcp", io.MultiReader(strings.NewReader(fit[:20]), &broken{}))
		if w := doRequest(handler, r, header); w.Code != 400 {
			t.Errorf("cut off: %d", w.Code)
		}
	}
	many := NewHTTPHandler(httpEcho(nil), nil)
	var keys strings.Builder
	for i := range 200000 {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	w := do(many, "POST", modernHead("tools/call", "echo"), modernRequest("1", "tools/call", `"name":"echo","arguments":{`+strings.TrimSuffix(keys.String(), ",")+`}`, "{}"))
	if w.Code != 200 {
		t.Errorf("many keys: %d %.200s", w.Code, w.Body)
	}
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestHTTPSessions(t *testing.T) {
	shows(t, "http.session.ascii", "http.session.assign", "http.session.gone-404", "http.session.missing-400", "http.session.secure")
	principal := func(r *http.Request) string { return r.Header.Get("X-User") }
	one, two := httpEcho(nil), httpEcho(nil)
	choose := func(r *http.Request) *Server {
		return map[string]*Server{"": one, "two": two}[r.Header.Get("X-Server")]
	}
	h := NewHTTPHandler(nil, &HTTPOptions{Server: choose, Principal: principal})
	defer endHTTP(t, h)
	ids := map[string]bool{}
	for range 50 {
		id := openHTTP(t, h, Version20251125, "{}")
		if ids[id] || len(id) < 32 || strings.IndexFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) >= 0 {
			t.Fatalf("session id %q", id)
		}
		ids[id] = true
	}
	id := openHTTP(t, h, Version20251125, "{}")
	list := request("1", "tools/list", "")
	for _, c := range []struct {
		what   string
		header http.Header
		status int
	}{
		{"unknown", head("Mcp-Session-Id", strings.Repeat("0", 32)), 404},
		{"empty", http.Header{"Mcp-Session-Id": {""}}, 400},
		{"none", nil, 400},
		{"two", http.Header{"Mcp-Session-Id": {id, id}}, 400},
		{"of another user", head("Mcp-Session-Id", id, "X-User", "eve"), 404},
		{"of another server", head("Mcp-Session-Id", id, "X-Server", "two"), 404},
		{"no server", head("Mcp-Session-Id", id, "X-Server", "three"), 404},
		{"unknown version", head("Mcp-Session-Id", id, "Mcp-Protocol-Version", "x"), 400},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if w := do(h, method, c.header, list); w.Code != c.status || strings.Contains(w.Body.String(), id) || w.Header()["Mcp-Session-Id"] != nil {
				t.Errorf("%s: %s: %d %s", c.what, method, w.Code, w.Body)
			}
		}
	}
	good := head("Mcp-Session-Id", id)
	w := do(h, "POST", good, initializeFrame("9", Version20251125, "{}"))
	if fits(t, w.Body.String(), `{"id":9,"error":{"code":-32600}}`); w.Header()["Mcp-Session-Id"] != nil {
		t.Error("initialize in a session opened another")
	}
	w = do(h, "POST", head("Mcp-Session-Id", "stale"), initializeFrame("9", Version20251125, "{}"))
	if fits(t, w.Body.String(), `{"id":9,"result":{}}`); w.Header().Get("Mcp-Session-Id") == "" {
		t.Error("initialize with a stale session id opened none")
	}
	w = do(h, "POST", good, list)
	if fits(t, w.Body.String(), `{"id":1,"result":{}}`); w.Code != 200 || w.Header()["Mcp-Session-Id"] != nil {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := do(h, "DELETE", good, ""); w.Code != 204 {
		t.Errorf("DELETE: %d", w.Code)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if w := do(h, method, good, list); w.Code != 404 {
			t.Errorf("%s after DELETE: %d", method, w.Code)
		}
	}
}

// TestHTTPNothingStored: nothing is kept before initialize has succeeded, nor
// of what came to an end.
func TestHTTPNothingStored(t *testing.T) {
	s := httpEcho(nil)
	answer := false
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if answer && req.Method == "initialize" {
				return map[string]any{"mine": true}, nil
			}
			return next(ctx, req)
		}
	})
	h := NewHTTPHandler(s, &HTTPOptions{MaxSessions: 3})
	gone, leave := context.WithCancel(context.Background())
	leave()
	initialize, discover := initializeFrame("1", Version20251125, "{}"), modernRequest("1", "server/discover", "", "{}")
	header := modernHead("server/discover", "")
	var before, after runtime.MemStats
	for i := range 20000 {
		if i == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(initialize)).WithContext(gone)
		switch i % 5 {
		case 0:
			doRequest(h, r, nil) // it hung up
		case 1:
			do(h, "POST", nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		case 2:
			do(h, "POST", nil, initialize[:50])
		case 3:
			do(h, "POST", header, discover)
		case 4:
			id := do(h, "POST", nil, initialize).Header().Get("Mcp-Session-Id")
			if w := do(h, "DELETE", head("Mcp-Session-Id", id), ""); w.Code != 204 {
				t.Fatalf("DELETE: %d %s", w.Code, w.Body)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	answer = true
	if w := do(h, "POST", nil, initialize); w.Header()["Mcp-Session-Id"] != nil {
		t.Error("middleware answered initialize, and there is a session")
	}
	answer = false
	if len(h.sessions) > 0 || h.opening != 0 || len(s.watchers) > 0 {
		t.Errorf("%d sessions, %d opening, %d watchers", len(h.sessions), h.opening, len(s.watchers))
	}
	for i := range 4 {
		w := do(h, "POST", nil, initialize)
		if full := i == 3; full && (w.Code != 503 || w.Header().Get("Retry-After") == "") || !full && w.Code != 200 {
			t.Errorf("session %d: %d", i, w.Code)
		}
	}
	endHTTP(t, h)
}

func TestHTTPStateless(t *testing.T) {
	shows(t, "http.header.version-default", "http.session.assign", "batch.receive", "batch.post.no-request-202")
	h := NewHTTPHandler(httpEcho(nil), &HTTPOptions{Stateless: true})
	w := do(h, "POST", nil, initializeFrame("1", Version20250618, "{}"))
	if fits(t, w.Body.String(), `{"id":1,"result":{"protocolVersion":"2025-06-18"}}`); w.Header()["Mcp-Session-Id"] != nil {
		t.Error("a stateless handler opened a session")
	}
	for header, result := range map[string]string{"": `{"tools":[{"title":null},{},{}],"resultType":null}`, Version20251125: `{"tools":[{},{},{}]}`} {
		w := do(h, "POST", head("Mcp-Protocol-Version", header, "Mcp-Session-Id", "whatever"), request("1", "tools/list", ""))
		fits(t, w.Body.String(), `{"id":1,"result":`+result+`}`)
	}
	if w := do(h, "POST", nil, `{"jsonrpc":"2.0","method":"notifications/x"}`); w.Code != 202 || w.Body.Len() > 0 {
		t.Errorf("notification: %d %s", w.Code, w.Body)
	}
	w = do(h, "POST", nil, `[`+request("1", "ping", "")+`,`+request("2", "ping", "")+`]`) // of 2025-03-26, since it says nothing else
	fits(t, w.Body.String(), `[{"result":{}},{"result":{}}]`)
	if w := do(h, "POST", head("Mcp-Protocol-Version", Version20251125), `[`+request("1", "ping", "")+`]`); w.Code != 400 {
		t.Errorf("a batch at 2025-11-25: %d %s", w.Code, w.Body)
	}
	if w := do(h, "POST", nil, `[{"jsonrpc":"2.0","method":"notifications/x"}]`); w.Code != 202 || w.Body.Len() > 0 {
		t.Errorf("batch of a notification: %d %s", w.Code, w.Body)
	}
	w = do(h, "POST", nil, callFrame("1", "ask"))
	fits(t, w.Body.String(), `{"id":1,"result":{"isError":true}}`)
	w = do(h, "POST", modernHead("tools/list", ""), modernRequest("1", "tools/list", "", "{}"))
	fits(t, w.Body.String(), `{"id":1,"result":{"resultType":"complete"}}`)
	endHTTP(t, h)
}

// TestHTTPJSON: every answer is one object; notices are lost, and only asking
// fails.
func TestHTTPJSON(t *testing.T) {
	h := NewHTTPHandler(httpEcho(nil), &HTTPOptions{JSON: true})
	id := openHTTP(t, h, Version20251125, `{"elicitation":{}}`)
	for _, header := range []http.Header{head("Mcp-Session-Id", id), modernHead("tools/call", "progress")} {
		body := callFrame("1", "progress")
		if header.Get("Mcp-Method") != "" {
			body = modernRequest("1", "tools/call", `"name":"progress"`, "{}")
			body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
		}
		w := do(h, "POST", header, body)
		if fits(t, w.Body.String(), `{"id":1,"result":{"content":[{"text":"done"}]}}`); w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v", w.Header())
		}
	}
	w := do(h, "POST", head("Mcp-Session-Id", id), callFrame("1", "ask"))
	fits(t, w.Body.String(), `{"id":1,"result":{"isError":true}}`)
	// Who reads only streams gets them.
	w = do(h, "POST", head("Mcp-Session-Id", id, "Accept", "text/event-stream"), callFrame("1", "progress"))
	if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	// And who reads no streams gets objects, everywhere.
	plain := NewHTTPHandler(httpEcho(nil), nil)
	w = do(plain, "POST", head("Accept", "application/json", "Mcp-Session-Id", openHTTP(t, plain, Version20251125, "{}")), callFrame("1", "progress"))
	fits(t, w.Body.String(), `{"id":1,"result":{}}`)
	endHTTP(t, plain)
	endHTTP(t, h)
}

func TestHTTPBatches(t *testing.T) {
	shows(t, "batch.receive", "batch.post.no-request-202", "batch.sse.response-each", "batch.sse.no-early-close")
	s := httpEcho(&ServerOptions{Filter: func(_ context.Context, req *Request, name string) bool {
		return name != "secret" || req.Principal == "ann" && req.Header["X-User"] != nil
	}})
	rawTool(s, "secret", func(ctx context.Context, req *Request) (*CallToolResult, error) { return textResult("told"), nil })
	h := NewHTTPHandler(s, &HTTPOptions{Principal: func(r *http.Request) string { return r.Header.Get("X-User") }})
	defer endHTTP(t, h)
	w := do(h, "POST", head("X-User", "ann"), initializeFrame("0", Version20250326, "{}"))
	header := head("Mcp-Session-Id", w.Header().Get("Mcp-Session-Id"), "X-User", "ann")
	note, secret := `{"jsonrpc":"2.0","method":"notifications/initialized"}`, request("1", "tools/call", `"name":"secret"`)
	for body, want := range map[string]string{
		`[` + note + `]`:                                        "",
		`[` + note + `,` + note + `]`:                           "",
		`[{"jsonrpc":"2.0","id":7,"result":{}}]`:                "",
		`[` + note + `,` + secret + `]`:                         `[{"id":1,"result":{"content":[{"text":"told"}]}}]`,
		`[` + request("1", "ping", "") + `,1]`:                  `[{"error":{"code":-32600}},{"id":1,"result":{}}]`,
		`[` + initializeFrame("1", Version20250326, "{}") + `]`: `[{"id":1,"error":{"code":-32600}}]`,
	} {
		w := do(h, "POST", header, body)
		if want == "" {
			if w.Code != 202 || w.Body.Len() > 0 {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
			continue
		}
		if w.Code != 200 {
			t.Errorf("%s: %d", body, w.Code)
		}
		if got := w.Body.String(); strings.Index(got, `"error"`) > 1 && strings.Contains(want, "ping") {
			t.Log(got)
		}
		sorted := parsed(t, w.Body.String()).([]any)
		slices.SortFunc(sorted, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		text, _ := json.Marshal(sorted)
		fits(t, string(text), want)
	}
	if w := do(h, "POST", header, `[]`); w.Code != 400 {
		t.Errorf("an empty batch: %d %s", w.Code, w.Body)
	}
	// On a stream, as soon as something goes before: then the answers, in one event.
	w = do(h, "POST", header, `[`+callFrame("1", "progress")+`,`+callFrame("2", "echo")+`,`+callFrame("3", "progress")+`]`)
	events := eventsOf(t, w.Body.String())
	if len(events) != 3 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s", w.Body)
	}
	if answers := parsed(t, events[2].data).([]any); len(answers) != 3 {
		t.Errorf("%d answers: %s", len(answers), events[2].data)
	}
}

// TestHTTPManyClients: many clients with the same ids, each gets its own
// answers.
func TestHTTPManyClients(t *testing.T) {
	shows(t, "http.sse.related", "http.sse.related-legacy")
	for _, stateless := range []bool{false, true} {
		s := httpEcho(nil)
		rawTool(s, "tell", func(ctx context.Context, req *Request) (*CallToolResult, error) {
			req.Progress(ctx, ProgressParams{Progress: 1, Message: string(req.Arguments)})
			return textResult("%s", req.Arguments), nil
		})
		h := NewHTTPHandler(s, &HTTPOptions{Stateless: stateless})
		var all sync.WaitGroup
		for client := range 20 {
			all.Go(func() {
				header := http.Header{}
				if modern := client%2 == 0; modern {
					header = modernHead("tools/call", "tell")
				} else if !stateless {
					header.Set("Mcp-Session-Id", openHTTP(t, h, Version20251125, "{}"))
				}
				for id := range 20 {
					tag := fmt.Sprintf("%d of %d", id, client)
					body := request(fmt.Sprint(id), "tools/call", `"name":"tell","arguments":{"tag":"`+tag+`"},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)
					if header.Get("Mcp-Method") == "" {
						body = strings.Replace(body, "2026-07-28", "2025-11-25", 1)
						header.Set("Mcp-Protocol-Version", "2025-11-25")
					}
					var events []sentEvent
					for _, e := range eventsOf(t, do(h, "POST", header, body).Body.String()) {
						if e.data != "" {
							events = append(events, e)
						}
					}
					if len(events) != 2 || !strings.Contains(events[0].data, tag) || !strings.Contains(events[1].data, tag) {
						t.Errorf("%s: %v", tag, events)
					}
				}
			})
		}
		all.Wait()
		endHTTP(t, h)
	}
}

// A sentEvent is an event as it was on the wire.
type sentEvent struct {
	id, name, data, retry, comment string
	hasID                          bool
}

// eventsOf splits a stream into its events, by the book.
func eventsOf(t *testing.T, stream string) (events []sentEvent) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		events = append(events, eventOf(t, strings.Split(block, "\n")))
	}
	return events
}

func eventOf(t *testing.T, lines []string) (e sentEvent) {
	for _, line := range lines {
		field, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok && line != "data:":
			t.Errorf("a line of a stream is %q", line)
		case field == "":
			e.comment = value
		case field == "id":
			e.id, e.hasID = value, true
		case field == "event":
			e.name = value
		case field == "retry":
			e.retry = value
		case field == "data":
			e.data = value
		}
	}
	return e
}

var errFlush = errors.New("the writer fails")

// TestHTTPWriters: writers behind middleware, which cannot flush or only say
// whom they wrap.
func TestHTTPWriters(t *testing.T) {
	log := new(logText)
	h := NewHTTPHandler(httpEcho(nil), &HTTPOptions{Logger: log.logger()})
	defer endHTTP(t, h)
	id := openHTTP(t, h, Version20251125, "{}")
	n := 0
	for name, wrap := range map[string]func(*httptest.ResponseRecorder) http.ResponseWriter{
		"unwraps":      func(w *httptest.ResponseRecorder) http.ResponseWriter { return unwraps{plainWriter{w}, w} },
		"cannot flush": func(w *httptest.ResponseRecorder) http.ResponseWriter { return plainWriter{w} },
		"cannot again": func(w *httptest.ResponseRecorder) http.ResponseWriter { return plainWriter{w} },
		"fails":        func(w *httptest.ResponseRecorder) http.ResponseWriter { return brokenWriter{plainWriter{w}} },
	} {
		for _, header := range []http.Header{head("Mcp-Session-Id", id), modernHead("tools/call", "progress")} {
			n++ // who fails may still be running
			body := callFrame(fmt.Sprint(n), "progress")
			if header.Get("Mcp-Method") != "" {
				body = strings.Replace(modernRequest("1", "tools/call", `"name":"progress"`, "{}"), `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
			}
			r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
			r.Header = head("Content-Type", "application/json")
			for k, v := range header {
				r.Header[k] = v
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(wrap(w), r)
			if done := strings.Contains(w.Body.String(), `"done"`); done == (name == "fails") || name == "unwraps" && !w.Flushed {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
	}
	if n := log.count("cannot flush"); n != 1 {
		t.Errorf("the log says %d times that events may be late", n)
	}
}

type plainWriter struct{ w *httptest.ResponseRecorder }

func (p plainWriter) Header() http.Header         { return p.w.Header() }
func (p plainWriter) WriteHeader(status int)      { p.w.WriteHeader(status) }
func (p plainWriter) Write(b []byte) (int, error) { return p.w.Write(b) }

type unwraps struct {
	plainWriter
	w http.ResponseWriter
}

func (u unwraps) Unwrap() http.ResponseWriter { return u.w }

type brokenWriter struct{ plainWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, errFlush }

// TestHTTPSeenByHandlers: what handlers see of HTTP, in both eras.
func TestHTTPSeenByHandlers(t *testing.T) {
	type key struct{}
	opened, closed := 0, 0
	s := emptyServer(&ServerOptions{Lifespan: func(ctx context.Context) (context.Context, func(), error) {
		opened++
		return context.WithValue(ctx, "life", "span"), func() { closed++ }, nil
	}})
	rawTool(s, "see", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%v %v %v %v", ctx.Value(key{}), ctx.Value("life"), req.Principal, req.Header["X-Mine"]), nil
	})
	seen := make(chan string, 10)
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == "notifications/x" {
				seen <- fmt.Sprint(ctx.Value("life"), req.Principal, req.Header["X-Mine"])
			}
			return next(ctx, req)
		}
	})
	for _, opts := range []HTTPOptions{{}, {Stateless: true}} {
		opts.Principal = func(r *http.Request) string { return "ann" }
		h := NewHTTPHandler(s, &opts)
		with := func(header http.Header, body string) string {
			header.Set("X-Mine", "yes")
			r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
			return doRequest(h, r.WithContext(context.WithValue(r.Context(), key{}, "value")), header).Body.String()
		}
		session := http.Header{}
		if !opts.Stateless {
			session.Set("Mcp-Session-Id", openHTTP(t, h, Version20250326, "{}"))
		}
		const want = `"result":{"content":[{"text":"value span ann [yes]"}]}`
		fits(t, with(session, callFrame("1", "see")), `{`+want+`}`)
		fits(t, with(session, `[`+callFrame("1", "see")+`]`), `[{`+want+`}]`)
		fits(t, with(modernHead("tools/call", "see"), modernRequest("1", "tools/call", `"name":"see"`, "{}")), `{`+want+`}`)
		for _, header := range []http.Header{session, head("Mcp-Protocol-Version", Version20260728)} {
			with(header, `{"jsonrpc":"2.0","method":"notifications/x"}`)
			if got := soon(t, "the notification", seen); got != "span ann [yes]" && got != "spanann[yes]" && got != "spanann [yes]" {
				t.Errorf("a notification sees %q", got)
			}
		}
		endHTTP(t, h)
		if w := do(h, "POST", modernHead("tools/list", ""), modernRequest("1", "tools/list", "", "{}")); w.Code != 503 {
			t.Errorf("after Shutdown: %d", w.Code)
		}
	}
	if opened != 2 || closed != 2 {
		t.Errorf("Lifespan: opened %d times, closed %d times, for two handlers", opened, closed)
	}
	bad := emptyServer(&ServerOptions{Lifespan: func(context.Context) (context.Context, func(), error) { return nil, nil, errors.New("secret") }})
	h := NewHTTPHandler(bad, nil)
	for _, w := range []*httptest.ResponseRecorder{do(h, "POST", nil, initializeFrame("1", Version20251125, "{}")), do(h, "POST", modernHead("tools/list", ""), modernRequest("1", "tools/list", "", "{}"))} {
		if fits(t, w.Body.String(), `{"id":1,"error":{"code":-32603}}`); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("a Lifespan that fails: %d %s", w.Code, w.Body)
		}
	}
	endHTTP(t, h)
}

// TestHTTPLogsNoSecrets: no session id, and nothing of what is in messages.
func TestHTTPLogsNoSecrets(t *testing.T) {
	log := new(logText)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := NewHTTPHandler(httpEcho(&ServerOptions{Logger: logger}), &HTTPOptions{Logger: logger})
	id := openHTTP(t, h, Version20251125, "{}")
	header := head("Mcp-Session-Id", id, "Authorization", "Bearer SECRET", "Mcp-Param-X", "SECRET")
	for _, body := range []string{callFrame("1", "SECRET"), callFrame("1", "progress"), `{"jsonrpc":"2.0","id":9,"result":{"SECRET":1}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":"SECRET"}`, `[`, `SECRET`} {
		if w := do(h, "POST", header, body); strings.Contains(w.Body.String(), id) {
			t.Errorf("%s", w.Body)
		}
	}
	header.Set("Last-Event-Id", "SECRET")
	do(h, "GET", header, "")
	do(h, "DELETE", header, "")
	endHTTP(t, h)
	if log.count(id)+log.count("SECRET") > 0 {
		t.Errorf("%s", &log.text)
	}
}
