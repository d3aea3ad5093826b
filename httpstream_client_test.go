//go:build go1.25

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
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// The client half of HTTP, against servers that do what they please.

// A hit is one request that a fake server got.
type hit struct {
	verb, method string // "POST", "tools/call"
	header       http.Header
	url          string
	id           ID
	params       json.RawMessage
	body         string
	at           time.Time
	n            int // of its kind, from 1
}

func (h *hit) kind() string { return strings.TrimSpace(h.verb + " " + h.method) }

// name is params.name.
func (h *hit) name() string {
	name, _ := stringValue(rawMember(h.params, "name"))
	return name
}

// A fakeHTTP is a server of one endpoint. What its answers say is the test's:
// do returns false for what it leaves to the server. Without client the
// requests go over the network.
type fakeHTTP struct {
	t        testing.TB
	versions []string // nil: 2026-07-28 only; a server of earlier ones has sessions
	do       func(w http.ResponseWriter, r *http.Request, h *hit) bool

	mu       sync.Mutex
	hits     []*hit
	sessions int
	live     string // the id of the session there is
}

func (f *fakeHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := &hit{verb: r.Method, header: r.Header, url: r.URL.String(), body: string(body), at: time.Now()}
	if m, _, bad := decodeMessage(body); bad == nil {
		h.method, h.id, h.params = m.Method, m.ID, m.Params
	}
	f.mu.Lock()
	f.hits = append(f.hits, h)
	for _, other := range f.hits {
		if other.kind() == h.kind() {
			h.n++
		}
	}
	f.mu.Unlock()
	if f.do != nil && f.do(w, r, h) {
		return
	}
	if f.versions == nil {
		f.modern(w, h)
	} else {
		f.legacy(w, h)
	}
}

func (f *fakeHTTP) modern(w http.ResponseWriter, h *hit) {
	switch {
	case h.verb != "POST":
		w.WriteHeader(405)
	case h.method == "server/discover":
		result(w, h, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{}}}`)
	case h.method == "tools/list":
		result(w, h, `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":60000,"cacheScope":"private"}`)
	default:
		result(w, h, `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`)
	}
}

func (f *fakeHTTP) legacy(w http.ResponseWriter, h *hit) {
	version := rawMember(rawMember(h.params, "_meta"), metaProtocolVersion)
	f.mu.Lock()
	live := f.live
	f.mu.Unlock()
	switch {
	case version != nil:
		w.WriteHeader(400)
	case h.method == "initialize":
		f.mu.Lock()
		f.sessions++
		f.live = fmt.Sprintf("session-number-%d", f.sessions)
		w.Header().Set("Mcp-Session-Id", f.live)
		f.mu.Unlock()
		result(w, h, `{"protocolVersion":"`+f.versions[0]+`","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"f","version":"1"}}`)
	case h.header.Get("Mcp-Session-Id") == "":
		w.WriteHeader(400)
	case h.header.Get("Mcp-Session-Id") != live:
		w.WriteHeader(404)
	case h.verb == "GET":
		w.WriteHeader(405)
	case h.verb == "DELETE":
	case h.id.IsZero():
		w.WriteHeader(202)
	case h.method == "tools/list":
		result(w, h, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
	default:
		result(w, h, `{"content":[{"type":"text","text":"ok"}]}`)
	}
}

// lose forgets the session.
func (f *fakeHTTP) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = "none"
}

// kinds returns what was asked for so far.
func (f *fakeHTTP) kinds() (kinds []string) {
	for _, h := range f.all() {
		kinds = append(kinds, h.kind())
	}
	return kinds
}

func (f *fakeHTTP) all() []*hit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.hits)
}

// of returns the requests of one kind.
func (f *fakeHTTP) of(kind string) (hits []*hit) {
	for _, h := range f.all() {
		if h.kind() == kind {
			hits = append(hits, h)
		}
	}
	return hits
}

func result(w http.ResponseWriter, h *hit, text string) {
	reply(w, 200, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"result":`+text+`}`)
}

func reply(w http.ResponseWriter, status int, typ, body string) {
	if typ != "" {
		w.Header().Set("Content-Type", typ)
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// events begins a stream of events and writes the first of them.
func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

// sseResult is an event with the answer to a request.
func sseResult(h *hit, text string) string {
	return `data: {"jsonrpc":"2.0","id":` + h.id.raw + `,"result":` + text + "}\n\n"
}

const okResult = `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`

// A direct is an http.RoundTripper that has no network: the handler runs on a
// goroutine of its own, and its request ends with the client's, or when the
// body of the response is closed.
type direct struct{ http.Handler }

type directWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	got    chan int
}

func (w *directWriter) Header() http.Header { return w.header }
func (w *directWriter) WriteHeader(status int) {
	w.once.Do(func() { w.got <- status })
}
func (w *directWriter) Flush() { w.WriteHeader(200) }
func (w *directWriter) Write(b []byte) (int, error) {
	w.WriteHeader(200)
	return w.body.Write(b)
}

type directBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b directBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	read, write := io.Pipe()
	w := &directWriter{header: make(http.Header), body: write, got: make(chan int, 1)}
	served := r.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	stop := context.AfterFunc(ctx, func() { write.CloseWithError(context.Canceled) })
	go func() {
		defer stop()
		defer write.Close()
		defer w.WriteHeader(200)
		defer func() {
			if p := recover(); p == http.ErrAbortHandler { // as the network does
				w.once.Do(func() { w.got <- 0 })
				write.CloseWithError(io.ErrUnexpectedEOF)
			} else if p != nil {
				panic(p)
			}
		}()
		d.ServeHTTP(w, served)
	}()
	select {
	case status := <-w.got:
		if status == 0 {
			cancel()
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: status, Header: w.header, Body: directBody{read, cancel}, ContentLength: -1, Request: r}, nil
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
}

// transport is one to f without a network.
func (f *fakeHTTP) transport() *HTTP {
	return &HTTP{URL: "http://fake.example/mcp", Client: &http.Client{Transport: direct{f}}}
}

// connect opens a session that ends with the test.
func (f *fakeHTTP) connect(t testing.TB, opts *ClientOptions, transport Transport) *ClientSession {
	t.Helper()
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, opts).Connect(context.Background(), transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// callText calls a tool and returns the text of its result.
func callText(cs *ClientSession, name string) (string, error) {
	return CallTool[string](context.Background(), cs, name, nil)
}

// sessionVersions are the versions of a client that does not ask for a modern one.
var sessionVersions = []string{Version20241105, Version20250326, Version20250618, Version20251125}

func TestHTTPClientNegotiates(t *testing.T) {
	shows(t, "http.compat.fallback", "http.compat.inspect-400", "http.compat.modern-error", "http.compat.modern-first", "http.method-not-found-client", "http.origin.body")
	rpc := func(id string, code int, data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"m"%s}}`, id, code, data)
	}
	const (
		isItself = "" // the error; nothing else is asked
		isOld    = "2025-11-25"
		isModern = "2026-07-28"
	)
	for _, c := range []struct {
		status    int
		typ, body string
		want      string
	}{
		{401, "", "", isItself}, {401, "application/json", rpc("1", -32600, ""), isItself},
		{403, "", "", isItself}, {403, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"origin"}}`, isItself},
		{402, "", "", isItself}, {407, "", "", isItself}, {408, "", "", isItself},
		{429, "text/plain", "slow down", isItself}, {429, "application/json", rpc("1", -32000, ""), isItself},
		{500, "text/plain", "broken", isItself}, {500, "application/json", rpc("1", -32603, ""), isItself}, {502, "text/html", "<p>", isItself},
		{503, "", "", isItself}, {503, "application/json", rpc("null", -32000, ""), isItself}, {504, "", "", isItself},
		{301, "", "", isItself}, {304, "", "", isItself},
		{200, "text/html", "<html>", isItself}, {202, "", "", isItself}, {204, "", "", isItself}, {200, "application/json", "{", isItself}, {200, "", "", isItself},

		{400, "", "", isOld}, {400, "text/html", "<p>bad</p>", isOld}, {400, "application/json", "{", isOld}, {400, "application/json", rpc("null", -32000, ""), isOld},
		{400, "application/json", rpc(`"server-error"`, -32600, ""), isOld}, {400, "application/json", rpc("1", -32600, ""), isOld}, {400, "application/json", rpc("1", -32602, ""), isOld},
		{404, "", "", isOld}, {404, "text/html", "<p>", isOld}, {404, "application/json", rpc("1", -32601, ""), isOld}, {404, "application/json", rpc("null", -32001, ""), isOld},
		{405, "", "", isOld}, {406, "", "", isOld}, {415, "", "", isOld}, {422, "", "", isOld}, {200, "application/json", rpc("1", -32601, ""), isOld},

		{400, "application/json", rpc("1", -32022, `,"data":{"supported":["2026-07-28"],"requested":"x"}`), isModern},
		{400, "application/json; charset=utf-8", rpc("null", -32022, `,"data":{"supported":["2026-07-28"],"requested":"x"}`), isModern},
		{400, "application/json", rpc("1", -32022, `,"data":{"supported":["2099-01-01"],"requested":"x"}`), isItself},
		{400, "application/json", rpc("1", -32022, ""), isItself}, {400, "application/json", rpc("1", -32020, ""), isItself},
		{400, "application/json", rpc("null", -32020, ""), isItself}, {400, "application/json", rpc("1", -32021, ""), isItself},
	} {
		t.Run(fmt.Sprintf("%d %s %s", c.status, c.typ, c.body), func(t *testing.T) {
			f := &fakeHTTP{t: t, versions: []string{Version20251125}}
			if c.want == isModern {
				f.versions = nil
			}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				if h.kind() != "POST server/discover" || h.n > 1 {
					return false
				}
				reply(w, c.status, c.typ, c.body)
				return true
			}
			transport := f.transport()
			transport.NoStream = true
			cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), transport)
			if err == nil {
				defer cs.Close()
			}
			asked := map[string][]string{
				isItself: {"POST server/discover"}, isOld: {"POST server/discover", "POST initialize"}, isModern: {"POST server/discover", "POST server/discover"},
			}[c.want]
			kinds := f.kinds()
			switch {
			case c.want == isItself && err == nil, c.want != isItself && err != nil:
				t.Fatalf("error %v", err)
			case len(kinds) < len(asked) || !slices.Equal(kinds[:len(asked)], asked) || c.want == isItself && len(kinds) != 1:
				t.Errorf("asked for %q", kinds)
			case err == nil && cs.Server().ProtocolVersion != c.want:
				t.Errorf("speaks %s", cs.Server().ProtocolVersion)
			}
			var status *HTTPError
			if err != nil && c.body != "{" && (!errors.As(err, &status) || status.Status != c.status) {
				t.Errorf("the error hides the status: %v", err)
			}
		})
	}
}

// silent is a transport whose requests fail, or never end.
type failing func(r *http.Request) (*http.Response, error)

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHTTPClientNetworkIsNotOld(t *testing.T) {
	shows(t, "http.compat.fallback")
	synctest.Test(t, func(t *testing.T) {
		for name, fail := range map[string]failing{
			"refused": func(r *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
			"silent":  func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			"reset":   func(r *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		} {
			var n atomic.Int32
			count := failing(func(r *http.Request) (*http.Response, error) { n.Add(1); return fail(r) })
			began := time.Now()
			_, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), &HTTP{URL: "http://fake.example/mcp?key=secret", Client: &http.Client{Transport: count}})
			if err == nil || n.Load() != 1 || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %d requests, %v", name, n.Load(), err)
			}
			if name == "silent" && (!errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute) {
				t.Errorf("a silent server: %v after %v", err, time.Since(began))
			}
		}
	})
}

func TestHTTPClientFindsOldTransport(t *testing.T) {
	shows(t, "http.compat.sse-client-get-list", "http.compat.sse-client-get-modern", "http.compat.sse-client-post", "http.compat.sse-client-endpoint", "sse.client.post")
	rpc := `{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m"}}`
	for _, c := range []struct {
		status    int
		body      string
		endpoint  string // that the stream names
		path      string // where messages go, "" when the client fails
		get       bool
		versions  []string
		wantError string
	}{
		{status: 404, endpoint: "/messages?s=1", path: "/messages?s=1", get: true},
		{status: 405, endpoint: "?session=1", path: "/mcp?session=1", get: true},
		{status: 400, endpoint: "http://fake.example/m", path: "http://fake.example/m", get: true, versions: sessionVersions},
		{status: 404, body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}`, endpoint: "m", path: "/m", get: true},
		{status: 404, endpoint: "http://evil.example/m", get: true, wantError: "another origin"},
		{status: 404, endpoint: "//evil.example/m", get: true, wantError: "another origin"},
		{status: 405, get: true}, // no stream either
		{status: 401}, {status: 403}, {status: 415}, {status: 429}, {status: 500}, {status: 503},
		{status: 404, body: fmt.Sprintf(rpc, -32601)}, {status: 400, body: fmt.Sprintf(rpc, -32022)}, {status: 400, body: fmt.Sprintf(rpc, -32020)},
	} {
		t.Run(fmt.Sprintf("%d %s %s", c.status, c.body, c.endpoint), func(t *testing.T) {
			out := make(chan string, 16)
			var posted []string
			var mu sync.Mutex
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.verb == "GET" && c.endpoint == "":
					w.WriteHeader(405)
				case h.verb == "GET":
					events(w, ": hello\n\nevent: endpoint\ndata: "+c.endpoint+"\n\n")
					for {
						select {
						case text := <-out:
							events(w, "event: message\n"+text)
						case <-r.Context().Done():
							return true
						}
					}
				case h.method == "server/discover":
					w.WriteHeader(404)
				case len(f.of("GET")) == 0 || c.path == "":
					reply(w, c.status, "application/json", strings.Replace(c.body, `"id":1`, `"id":`+h.id.raw, 1))
				default:
					mu.Lock()
					posted = append(posted, h.url)
					mu.Unlock()
					w.WriteHeader(202)
					if h.method == "initialize" {
						out <- sseResult(h, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`)
					} else if !h.id.IsZero() {
						out <- sseResult(h, okResult)
					}
				}
				return true
			}
			cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: c.versions}).Connect(context.Background(), f.transport())
			if (err == nil) != (c.path != "") || err != nil && !strings.Contains(err.Error(), c.wantError) {
				t.Fatalf("error %v", err)
			}
			if got := len(f.of("GET")) > 0; got != c.get {
				t.Errorf("asked for %q", f.kinds())
			}
			if err != nil {
				return
			}
			defer cs.Close()
			if text, err := callText(cs, "t"); text != "ok" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, url := range posted {
				if strings.TrimPrefix(url, "http://fake.example") != strings.TrimPrefix(c.path, "http://fake.example") {
					t.Errorf("a message went to %s", url)
				}
			}
			if len(posted) != 3 {
				t.Errorf("%d messages", len(posted))
			}
		})
	}
}

// A passOn is a transport around another one that hides what it is.
type passOn struct{ inner Transport }

type passOnConn struct{ inner Conn }

func (p passOn) Connect(ctx context.Context) (Conn, error) {
	conn, err := p.inner.Connect(ctx)
	return passOnConn{conn}, err
}
func (p passOnConn) Read(ctx context.Context) ([]byte, error)      { return p.inner.Read(ctx) }
func (p passOnConn) Write(ctx context.Context, frame []byte) error { return p.inner.Write(ctx, frame) }
func (p passOnConn) Close() error                                  { return p.inner.Close() }

func TestHTTPClientHeadersModern(t *testing.T) {
	shows(t, "http.header.version", "http.header.version-match", "http.header.method", "http.header.name", "http.post.headers", "http.post.accept", "http.post.one-message", "http.post.body-modern")
	f := &fakeHTTP{t: t}
	f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
		w.Header().Set("Mcp-Session-Id", "not-of-this-revision") // to be ignored
		if h.method == "server/discover" && h.n == 1 {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}}`)
			return true
		}
		return false
	}
	transport := f.transport()
	transport.Header = http.Header{"x-api-key": {"k"}, "Mcp-Method": {"mine"}, "mcp-session-id": {"mine"}, "Accept": {"mine"}, "mcp-param-x": {"mine"}}
	cs := f.connect(t, nil, passOn{transport})
	ctx := context.Background()
	cs.CallTool(ctx, "tool", nil)
	cs.GetPrompt(ctx, "prompt", nil)
	cs.ReadResource(ctx, "file:///a")
	for range cs.Tools(ctx) {
	}
	cs.Call(ctx, "my/method", json.RawMessage(`{"name":"n"}`), nil)
	cs.Notify(ctx, "notifications/mine", nil)
	cs.Close()
	names := map[string]string{"tools/call": "tool", "prompts/get": "prompt", "resources/read": "file:///a"}
	hits := f.all()
	if len(hits) < 7 {
		t.Fatalf("asked for %q", f.kinds())
	}
	for _, h := range hits {
		version, stamped := stringValue(rawMember(rawMember(h.params, "_meta"), metaProtocolVersion))
		if h.verb != "POST" || !json.Valid([]byte(h.body)) || h.method == "" {
			t.Errorf("%s: %s", h.kind(), h.body)
		}
		if h.header.Get("MCP-Protocol-Version") != "2026-07-28" || stamped && version != "2026-07-28" || !stamped && !h.id.IsZero() {
			t.Errorf("%s: version %q, in the body %q", h.kind(), h.header["Mcp-Protocol-Version"], version)
		}
		if h.header.Get("Mcp-Method") != h.method || h.header.Get("Mcp-Name") != names[h.method] || len(h.header["Mcp-Name"]) > 1 {
			t.Errorf("%s: method %q, name %q", h.kind(), h.header["Mcp-Method"], h.header["Mcp-Name"])
		}
		if h.header.Get("Accept") != "application/json, text/event-stream" || h.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %q", h.kind(), h.header)
		}
		if h.header.Get("X-Api-Key") != "k" || h.header["Mcp-Session-Id"] != nil || h.header["Mcp-Param-X"] != nil {
			t.Errorf("%s: %q", h.kind(), h.header)
		}
	}
}

func TestHTTPClientHeadersLegacy(t *testing.T) {
	shows(t, "http.header.version-legacy", "http.header.version-negotiated", "http.header.none-2025-03", "http.session.echo", "http.session.delete", "http.get.accept", "http.get.open", "http.post.body-single", "http.post.client-responses")
	for _, version := range []string{Version20250326, Version20250618, Version20251125} {
		for _, probe := range []bool{false, true} {
			f := &fakeHTTP{t: t, versions: []string{version}}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.verb == "GET":
					events(w, `data: {"jsonrpc":"2.0","id":"s","method":"ping"}`+"\n\n")
					<-r.Context().Done()
				case h.method == "tools/call": // an id that is no session's
					w.Header().Set("Mcp-Session-Id", "another-one")
					return false
				default:
					return false
				}
				return true
			}
			opts := &ClientOptions{Versions: sessionVersions}
			if probe {
				opts.Versions = nil
			}
			cs := f.connect(t, opts, passOn{f.transport()})
			callText(cs, "t")
			callText(cs, "t")
			cs.Notify(context.Background(), "notifications/mine", nil)
			waitUntil(t, "the messages", func() bool { return len(f.of("POST")) > 0 && len(f.of("POST notifications/mine")) > 0 })
			cs.Close()
			began := false
			for _, h := range f.all() {
				if h.method == "server/discover" {
					continue
				}
				want := http.Header{}
				if began {
					want.Set("Mcp-Session-Id", "session-number-1")
					if version != Version20250326 {
						want.Set("Mcp-Protocol-Version", version)
					}
				}
				began = true
				for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
					if !slices.Equal(h.header[name], want[name]) {
						t.Errorf("%s: %s: %s is %q", version, h.kind(), name, h.header[name])
					}
				}
				if accept := h.header.Get("Accept"); h.verb == "POST" && accept != "application/json, text/event-stream" || h.verb == "GET" && accept != "text/event-stream" {
					t.Errorf("%s: accepts %q", h.kind(), accept)
				}
			}
			if len(f.of("GET")) != 1 || len(f.of("DELETE")) != 1 || len(f.of("POST")) != 1 {
				t.Errorf("%s: asked for %q", version, f.kinds())
			}
		}
	}
}

// namesToEncode are what Mcp-Name and Mcp-Param headers have to carry.
var namesToEncode = map[string]string{
	"get_weather": "get_weather", "a b": "a b", "a\tb": "a\tb", "": "",
	"naïve":              "=?base64?bmHDr3Zl?=",
	" padded ":           "=?base64?IHBhZGRlZCA=?=",
	"\ttab":              "=?base64?CXRhYg==?=",
	"=?base64?QUJD?=":    "=?base64?PT9iYXNlNjQ/UVVKRD89?=",
	"=?BASE64?QUJD?=":    "=?BASE64?QUJD?=",
	"a\r\nX-Evil: 1":     "=?base64?YQ0KWC1FdmlsOiAx?=",
	"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
	"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
	"\x7f":               "=?base64?fw==?=",
	"us-west1":           "us-west1",
	"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
}

func TestHTTPClientEncodesNames(t *testing.T) {
	shows(t, "http.header.name-encoding", "http.param.base64", "http.param.base64-literal", "http.param.base64-marker", "http.param.encode")
	f := &fakeHTTP{t: t}
	server := httptest.NewServer(f) // what a real server makes of it
	defer server.Close()
	cs := f.connect(t, nil, &HTTP{URL: server.URL})
	ctx := context.Background()
	names := map[string]string{strings.Repeat("n", 8<<10): strings.Repeat("n", 8<<10), strings.Repeat("é", 4<<10): ""}
	for name, want := range namesToEncode {
		names[name] = want
	}
	for name, want := range names {
		if want == "" && name != "" {
			want = "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
		}
		cs.CallTool(ctx, name, nil)
		cs.GetPrompt(ctx, name, nil)
		cs.With(CallOptions{Insist: true}).ReadResource(ctx, name)
		hits := f.all()
		for _, h := range hits[len(hits)-3:] {
			if got := h.header["Mcp-Name"]; len(got) != 1 || got[0] != want || h.header["X-Evil"] != nil {
				t.Errorf("%s of %.40q: %.80q", h.kind(), name, got)
			}
			if back, ok := decodeHeader(h.header.Get("Mcp-Name")); !ok || back != name {
				t.Errorf("%.40q is read as %.40q", name, back)
			}
		}
	}
}

func TestHTTPClientParams(t *testing.T) {
	shows(t, "http.param.support", "http.param.mirror", "http.param.extract", "http.param.omit-absent", "http.param.omit-null", "http.param.encode-types", "http.param.safe-integer")
	f := &fakeHTTP{t: t}
	f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
		if h.method == "tools/list" {
			result(w, h, `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{
				"s":{"type":"string","x-mcp-header":"S","default":"d"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"},
				"deep":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Deep-S"}}}}}}]}`)
			return true
		}
		return false
	}
	cs := f.connect(t, nil, f.transport())
	for range cs.Tools(context.Background()) {
	}
	type headers map[string]string
	rows := map[string]headers{
		`{}`:                                     {},
		`{"s":null,"i":null,"deep":null}`:        {},
		`{"deep":{}}`:                            {},
		`{"deep":{"s":"in"},"s":"out"}`:          {"S": "out", "Deep-S": "in"},
		`{"deep":[1]}`:                           {},
		`{"s":""}`:                               {"S": ""},
		`{"i":42}`:                               {"I": "42"},
		`{"i":42.0}`:                             {"I": "42"},
		`{"i":-7}`:                               {"I": "-7"},
		`{"i":1e3}`:                              {"I": "1000"},
		`{"i":0}`:                                {"I": "0"},
		`{"i":9007199254740991}`:                 {"I": "9007199254740991"},
		`{"i":-9007199254740991}`:                {"I": "-9007199254740991"},
		`{"b":false}`:                            {"B": "false"},
		`{"b":true}`:                             {"B": "true"},
		`{"s":"a\nb"}`:                           {"S": "=?base64?YQpi?="},
		`{"s":"\r\nX-Evil: 1"}`:                  {"S": "=?base64?DQpYLUV2aWw6IDE=?="},
		`{"i":9007199254740992}`:                 nil,
		`{"i":-9007199254740992}`:                nil,
		`{"other":"x","S":"case is not folded"}`: {},
	}
	for name, want := range namesToEncode {
		quoted, _ := json.Marshal(name)
		rows[`{"s":`+string(quoted)+`}`] = headers{"S": want}
	}
	for arguments, want := range rows {
		before := len(f.of("POST tools/call"))
		_, err := cs.CallTool(context.Background(), "t", json.RawMessage(arguments))
		hits := f.of("POST tools/call")[before:]
		if want == nil {
			if err == nil || len(hits) != 0 || !strings.Contains(err.Error(), "2^53") {
				t.Errorf("%s was sent, %v", arguments, err)
			}
			continue
		}
		if err != nil || len(hits) != 1 {
			t.Errorf("%s: %d requests, %v", arguments, len(hits), err)
			continue
		}
		got := headers{}
		for name, values := range hits[0].header {
			if name, ok := strings.CutPrefix(name, "Mcp-Param-"); ok {
				got[name] = strings.Join(values, "|")
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q", arguments, got)
		}
	}
}

func TestHTTPClientLeavesOutBadTools(t *testing.T) {
	shows(t, "http.param.reject-tool", "http.param.reject-log", "http.param.other-transport")
	bad := map[string]string{
		"items":      `"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`,
		"one-of":     `"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`,
		"number":     `"a":{"type":"number","x-mcp-header":"A"}`,
		"object":     `"a":{"type":"object","x-mcp-header":"A"}`,
		"no-type":    `"a":{"x-mcp-header":"A"}`,
		"empty":      `"a":{"type":"string","x-mcp-header":""}`,
		"space":      `"a":{"type":"string","x-mcp-header":"A B"}`,
		"crlf":       `"a":{"type":"string","x-mcp-header":"A\r\nB"}`,
		"colon":      `"a":{"type":"string","x-mcp-header":"A:"}`,
		"non-ascii":  `"a":{"type":"string","x-mcp-header":"Ä"}`,
		"not-string": `"a":{"type":"string","x-mcp-header":7}`,
		"twice":      `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`,
	}
	tool := func(name, properties, more string) string {
		return `{"name":"` + name + `","inputSchema":{"type":"object","properties":{` + properties + `}` + more + `}}`
	}
	tools := []string{
		tool("first", `"a":{"type":"string"}`, ""), tool("marked", `"a":{"type":"string","x-mcp-header":"A"}`, ""),
		tool("ref", `"a":{"$ref":"#/$defs/a"}`, `,"$defs":{"a":{"type":"string","x-mcp-header":"A"}}`),
	}
	bad["ref"] = ""
	for name, properties := range bad {
		if name != "ref" {
			tools = append(tools, tool(name, properties, ""))
		}
	}
	tools = append(tools, tool("value", `"a":{"type":"object","default":{"x-mcp-header":"A B"}}`, ""), tool("last", "", ""))
	list := strings.Join(tools, ",")
	f := &fakeHTTP{t: t}
	f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
		if h.method == "tools/list" {
			result(w, h, `{"_meta":{"same":[`+list+`]},"tools":[`+list+`],"resultType":"complete","ttlMs":60000,"cacheScope":"private"}`)
		}
		return h.method == "tools/list"
	}
	var log bytes.Buffer
	transport := f.transport()
	transport.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cs := f.connect(t, nil, transport)
	var names []string
	for tool, err := range cs.Tools(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if want := []string{"first", "marked", "value", "last"}; !slices.Equal(names, want) {
		t.Errorf("tools %q", names)
	}
	for name := range bad {
		if !strings.Contains(log.String(), "level=WARN msg=\"mcp: tool left out\" tool="+name+" error=") {
			t.Errorf("no warning about %s", name)
		}
	}
	if !strings.Contains(log.String(), "integer") || !strings.Contains(log.String(), "used twice") {
		t.Errorf("no reasons:\n%s", &log)
	}
	// Without HTTP nothing is left out.
	s := NewServer(Implementation{Name: "s", Version: "1"}, nil)
	AddTool(s, Tool{Name: "x"}, func(context.Context, *Request, struct{}) (string, error) { return "", nil })
	s.Handle("tools/list", func(context.Context, *Request) (any, error) {
		return json.RawMessage(`{"tools":[` + list + `]}`), nil
	})
	client, server := InMemory()
	served := make(chan error, 1)
	go func() { served <- s.Run(context.Background(), server) }()
	cs = f.connect(t, nil, client)
	n := 0
	for range cs.Tools(context.Background()) {
		n++
	}
	cs.Close()
	if err := <-served; n != len(tools) || err != nil {
		t.Errorf("%d tools of %d without HTTP, %v", n, len(tools), err)
	}
}

func TestHTTPClientRefreshesTools(t *testing.T) {
	shows(t, "http.param.refresh")
	mismatch := func(w http.ResponseWriter, h *hit) {
		reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32020,"message":"no such header"}}`)
	}
	for name, c := range map[string]struct {
		second string // mark of the tool in the newest list
		want   []string
		ok     bool
		accept func(h *hit) bool
	}{
		"changed": {`"x-mcp-header":"New",`, []string{"POST tools/call", "POST tools/list", "POST tools/list", "POST tools/call"}, true, func(h *hit) bool { return h.header.Get("Mcp-Param-New") == "v" && h.header["Mcp-Param-Old"] == nil }},
		"gone":    {``, []string{"POST tools/call", "POST tools/list", "POST tools/list", "POST tools/call"}, true, func(h *hit) bool { return h.header["Mcp-Param-Old"] == nil }},
		"never":   {`"x-mcp-header":"New",`, []string{"POST tools/call", "POST tools/list", "POST tools/list", "POST tools/call"}, false, func(h *hit) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeHTTP{t: t}
			lists := 0
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.method == "tools/list" && rawMember(h.params, "cursor") == nil:
					lists++
					result(w, h, `{"resultType":"complete","tools":[{"name":"other","inputSchema":{"type":"object"}}],"nextCursor":"2","ttlMs":60000,"cacheScope":"public"}`)
				case h.method == "tools/list":
					mark := `"x-mcp-header":"Old",`
					if lists > 1 {
						mark = c.second
					}
					events(w, sseResult(h, `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{`+mark+`"type":"string"}}}}],"ttlMs":60000,"cacheScope":"public"}`))
				case h.method == "tools/call" && !c.accept(h):
					mismatch(w, h)
				default:
					return false
				}
				return true
			}
			cs := f.connect(t, nil, f.transport())
			for range cs.Tools(context.Background()) {
			}
			before := len(f.kinds())
			n := 0
			_, err := cs.With(CallOptions{Progress: func(ProgressParams) { n++ }}).CallTool(context.Background(), "t", json.RawMessage(`{"a":"v"}`))
			var refused *Error
			if (err == nil) != c.ok || err != nil && (!errors.As(err, &refused) || refused.Code != CodeHeaderMismatch) {
				t.Errorf("%v", err)
			}
			if got := f.kinds()[before:]; !slices.Equal(got, c.want) {
				t.Errorf("asked for %q", got)
			}
			for _, h := range f.all()[before:] {
				if token := rawMember(rawMember(h.params, "_meta"), metaProgressToken); h.method == "tools/list" && token != nil {
					t.Errorf("the list was asked for with the call's token")
				}
			}
		})
	}
}

// eventStreams are streams of server-sent events, with what is in them: an
// event is written name|id|data, with "-" for no id, and its retry time.
var eventStreams = []struct {
	stream string
	want   []string
}{
	{"data:{\"a\":1}\n\n", []string{"|-|{\"a\":1}"}},
	{"data: {\ndata:  \"a\": 1\ndata: }\n\n", []string{"|-|{\n \"a\": 1\n}"}},
	{"data: a\r\rdata: b\r\r", []string{"|-|a", "|-|b"}},
	{"data: a\r\n\r\ndata: b\r\n\r\n", []string{"|-|a", "|-|b"}},
	{"id: 1\r\ndata: {\r\ndata: }\r\n\r\n", []string{"|1|{\n}"}},
	{"data: a\rdata: b\ndata: c\r\n\r\n", []string{"|-|a\nb\nc"}},
	{"data: a\r\n\ndata: b\n\r\n", []string{"|-|a", "|-|b"}},
	{": comment\n:\n\ndata: a\n: more\ndata: b\n\n: end\n", []string{"|-|a\nb"}},
	{"event: message\ndata: a\n\n", []string{"message|-|a"}},
	{"event:ping\ndata:ping\n\n", []string{"ping|-|ping"}},
	{"id: 7\ndata:\n\n", []string{"|7|"}},
	{"id: 7\n\n", []string{"|7|"}},
	{"id\n\n", []string{"||"}},
	{"id: a\x00b\ndata: a\n\n", []string{"|-|a"}},
	{"retry: 250\n\n", []string{"|-| 250ms"}},
	{"retry: x\ndata: a\n\nretry: -1\ndata: b\n\nretry: 1.5\ndata: c\n\nretry: +5\ndata: d\n\nretry:\ndata: e\n\nretry: 99999999999\ndata: f\n\n", []string{"|-|a", "|-|b", "|-|c", "|-|d", "|-|e", "|-|f"}},
	{"\ufeffdata: a\n\n", []string{"|-|a"}},
	{"\ufeff\ufeffdata: a\n\ndata: b\n\n", []string{"|-|b"}},
	{"data: é😀\n\n", []string{"|-|é😀"}},
	{"unknown: x\nDATA: y\ndata : z\n data: q\nunknown\ndata: a\n\n", []string{"|-|a"}},
	{"data: a\n\ndata: cut", []string{"|-|a"}},
	{"data: a\n\ndata: cut\n", []string{"|-|a"}},
	{"data\n\n", []string{"|-|"}},
	{"data\ndata\n\n", []string{"|-|\n"}},
	{"data:  a\ndata:b\n\n", []string{"|-| a\nb"}},
	{"data: a:b: c\n\n", []string{"|-|a:b: c"}},
	{"\n\n\r\r\r\ndata: a\n\n", []string{"|-|a"}},
	{"event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\ndata: y\n\n", []string{"b|2|x", "|-|y"}},
	{"", nil}, {"\ufeff", nil}, {"\n", nil},
}

// readEvents reads all events of a stream.
func readEvents(r io.Reader, max int) (all []string, err error) {
	reader := newEventReader(r, max)
	for {
		e, err := reader.next()
		if err != nil {
			return all, err
		}
		id, retry := "-", ""
		if e.hasID {
			id = e.id
		}
		if e.retry >= 0 {
			retry = " " + e.retry.String()
		}
		all = append(all, e.name+"|"+id+"|"+e.data+retry)
	}
}

// inParts reads a text in two parts.
func inParts(text string, at int) io.Reader {
	return io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:]))
}

func TestEventReader(t *testing.T) {
	shows(t, "http.sse.parsing", "http.sse.comments", "http.sse.prime-tolerated")
	for _, c := range eventStreams {
		readers := map[string]io.Reader{"whole": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)), "with the error": iotest.DataErrReader(strings.NewReader(c.stream))}
		for at := range len(c.stream) {
			readers[fmt.Sprintf("cut at %d", at)] = inParts(c.stream, at)
		}
		for how, r := range readers {
			if got, err := readEvents(r, 1<<20); !slices.Equal(got, c.want) || err != io.EOF {
				t.Errorf("%q, %s: %q, %v", c.stream, how, got, err)
			}
		}
	}
}

// An event is there when its last byte is: with CR, LF or both.
func TestEventReaderDoesNotWait(t *testing.T) {
	shows(t, "http.sse.parsing")
	for _, end := range []string{"\n", "\r", "\r\n"} {
		r, w := io.Pipe()
		reader := newEventReader(r, 1<<10)
		go io.WriteString(w, "data: a"+end+end[:1])
		if e, err := reader.next(); e.data != "a" || err != nil {
			t.Errorf("%q: %v, %v", end, e, err)
		}
		w.Close()
	}
}

func TestEventReaderLimits(t *testing.T) {
	big, skipped := strings.Repeat("x", 10<<20), 1000000
	if raceEnabled {
		skipped /= 10
	}
	if got, err := readEvents(strings.NewReader("data: "+big+"\n\n"), 10<<20); len(got) != 1 || len(got[0]) != len("|-|")+len(big) || err != io.EOF {
		t.Errorf("an event of 10 MiB: %d, %v", len(got), err)
	}
	for name, stream := range map[string]string{
		"a line": "data: " + big + "\n\n", "lines": strings.Repeat("data: "+big[:1000]+"\n", 2000), "no end": big, "a comment": ":" + big, "an id": "id: " + big + "\n",
	} {
		if got, err := readEvents(strings.NewReader(stream), 1<<20); len(got) != 0 || err != errEventTooLarge {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
	for name, stream := range map[string]string{
		"events": strings.Repeat("event: ping\ndata: x\n\n", skipped), "comments": strings.Repeat(":\n", skipped/10), "fields": strings.Repeat("other: x\n", skipped/10) + "\n", "names": strings.Repeat("event: x\n", skipped/10),
	} {
		if _, err := readEvents(strings.NewReader(stream), 100); err != io.EOF {
			t.Errorf("many %s: %v", name, err)
		}
	}
}

// However a stream is cut into reads, the events are the same; and written
// again they are read as before.
func FuzzEventReader(f *testing.F) {
	for _, c := range eventStreams {
		f.Add([]byte(c.stream), uint16(len(c.stream)/2))
	}
	f.Fuzz(func(t *testing.T, stream []byte, at uint16) {
		whole, err := readEvents(bytes.NewReader(stream), 1<<12)
		for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(stream)), iotest.HalfReader(bytes.NewReader(stream)), inParts(string(stream), int(at)%(len(stream)+1))} {
			if got, gotErr := readEvents(r, 1<<12); !slices.Equal(got, whole) || gotErr != err {
				t.Fatalf("%q: %q, %v; whole %q, %v", stream, got, gotErr, whole, err)
			}
		}
		unix := bytes.ReplaceAll(bytes.ReplaceAll(stream, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		if got, gotErr := readEvents(bytes.NewReader(unix), 1<<12); !slices.Equal(got, whole) || gotErr != err {
			t.Fatalf("%q: %q, %v; with LF %q, %v", stream, whole, err, got, gotErr)
		}
	})
}

// legacySession is a session of 2025-11-25 with f in which GET has been
// answered; f.versions are set.
func (f *fakeHTTP) legacySession(t testing.TB, change func(*HTTP)) *ClientSession {
	t.Helper()
	f.versions = []string{Version20251125}
	transport := f.transport()
	if change != nil {
		change(transport)
	}
	return f.connect(t, &ClientOptions{Versions: sessionVersions}, transport)
}

func TestHTTPClientTakesAnswers(t *testing.T) {
	shows(t, "http.post.client-both", "http.post.notif-error-body", "http.get.405-tolerated", "http.get.close-any")
	synctest.Test(t, func(t *testing.T) {
		for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, h *hit){
			"notification 200":         func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 200, "", "") },
			"notification 204":         func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 204, "", "") },
			"notification 202, a body": func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 202, "text/plain", "Accepted") },
			"notification 400": func(w http.ResponseWriter, r *http.Request, h *hit) {
				reply(w, 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}`)
			},
			"notification, a stream": func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, ": open\n\n"); <-r.Context().Done() },
			"GET 400":                func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 400, "", "") },
			"GET 404":                func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 404, "", "") },
			"GET 405":                func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 405, "", "") },
			"GET 501":                func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 501, "", "") },
			"GET 302": func(w http.ResponseWriter, r *http.Request, h *hit) {
				w.Header().Set("Location", "http://other.example/")
				reply(w, 302, "", "")
			},
			"GET 200 of HTML": func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 200, "text/html", "<html>") },
			"GET 204":         func(w http.ResponseWriter, r *http.Request, h *hit) { reply(w, 204, "", "") },
			"call JSON": func(w http.ResponseWriter, r *http.Request, h *hit) {
				reply(w, 200, "application/json", strings.TrimSuffix(strings.TrimPrefix(sseResult(h, okResult), "data: "), "\n"))
			},
			"call JSON, charset": func(w http.ResponseWriter, r *http.Request, h *hit) {
				reply(w, 200, "Application/JSON; Charset=UTF-8", strings.TrimPrefix(sseResult(h, okResult), "data: "))
			},
			"call stream": func(w http.ResponseWriter, r *http.Request, h *hit) {
				events(w, "event: message\nid: 1\n"+sseResult(h, okResult))
			},
			"call stream, left open": func(w http.ResponseWriter, r *http.Request, h *hit) {
				events(w, sseResult(h, okResult))
				<-r.Context().Done()
			},
			"call stream, charset": func(w http.ResponseWriter, r *http.Request, h *hit) {
				w.Header().Set("Content-Type", "text/event-stream;charset=utf-8")
				io.WriteString(w, sseResult(h, okResult))
			},
			"call batch": func(w http.ResponseWriter, r *http.Request, h *hit) {
				events(w, "event: ping\ndata: ping\n\nid: 5\ndata:\n\n"+sseResult(h, okResult))
			},
		} {
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				its := map[bool]string{true: "call", false: "notification"}[!h.id.IsZero()]
				if h.verb == "GET" {
					its = "GET"
				}
				if kind, _, _ := strings.Cut(name, " "); strings.TrimSuffix(kind, ",") != its || h.method == "initialize" || h.verb == "DELETE" {
					return false
				}
				answer(w, r, h)
				return true
			}
			began := time.Now()
			cs := f.legacySession(t, nil)
			for range 3 {
				if text, err := callText(cs, "t"); text != "ok" || err != nil {
					t.Errorf("%s: %q, %v", name, text, err)
				}
			}
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("%s: three calls took %v", name, d)
			}
			time.Sleep(time.Hour)
			if len(f.of("GET")) != 1 || len(f.of("POST initialize")) != 1 {
				t.Errorf("%s: asked for %q", name, f.kinds())
			}
			cs.Close()
		}
	})
}

func TestHTTPClientRefusesAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		typ, body string
		want      []string // of the error
	}{
		"HTML":         {200, "text/html; charset=utf-8", "<title>Sign in</title>", []string{"200 OK", `"text/html"`, "Sign in"}},
		"no type":      {200, "", "", []string{"200 OK"}},
		"accepted":     {202, "", "", []string{"202 Accepted"}},
		"another's":    {200, "application/json", `{"jsonrpc":"2.0","id":"another","result":{}}`, []string{"no response to it"}},
		"a request":    {200, "application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"no response to it"}},
		"no JSON":      {200, "application/json", `{`, []string{"no response to it"}},
		"empty stream": {200, "text/event-stream", "", []string{"the connection was lost before tools/call was answered"}},
		"large":        {200, "application/json", `{"a":"` + strings.Repeat("x", 5000) + `"}`, []string{"larger than 4000 bytes"}},
		"large event":  {200, "text/event-stream", "id: 1\ndata: 1\n\ndata: " + strings.Repeat("x", 5000) + "\n\n", []string{"the event is too large"}},
	} {
		f := &fakeHTTP{t: t, versions: []string{Version20251125}}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			if h.method != "tools/call" || h.n > 1 {
				return false
			}
			reply(w, c.status, c.typ, c.body)
			return true
		}
		transport := f.transport()
		transport.MaxMessage = 4000
		cs := f.connect(t, nil, transport)
		_, err := callText(cs, "t")
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if text, err := callText(cs, "t"); text != "ok" || err != nil {
			t.Errorf("%s: the next call: %q, %v", name, text, err)
		}
	}
}

// gaps returns the times between requests of one kind.
func (f *fakeHTTP) gaps(kind string) (gaps []time.Duration) {
	hits := f.of(kind)
	for i := 1; i < len(hits); i++ {
		gaps = append(gaps, hits[i].at.Sub(hits[i-1].at))
	}
	return gaps
}

func TestHTTPClientReconnectsSlowly(t *testing.T) {
	shows(t, "http.sse.retry-respect", "http.resume.get", "http.get.close-any")
	second := time.Second
	for _, c := range []struct {
		name    string
		retries int
		get     func(w http.ResponseWriter, r *http.Request, h *hit)
		gaps    []time.Duration // at least these, and a quarter more at most; nil: for ever
	}{
		{"closed at once", 0, func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, "") }, []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second}},
		{"only comments", 3, func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, ": hi\n\n") }, []time.Duration{second, 2 * second, 4 * second}},
		{"never", -1, func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, "id: 1\n\n") }, []time.Duration{}},
		{"ceiling", 8, func(w http.ResponseWriter, r *http.Request, h *hit) { panic(http.ErrAbortHandler) }, []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 30 * second, 30 * second, 30 * second}},
		{"503", 2, func(w http.ResponseWriter, r *http.Request, h *hit) { w.WriteHeader(503) }, []time.Duration{second, 2 * second}},
		{"retry", 4, func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, "retry: 5000\n\n") }, []time.Duration{5 * second, 5 * second, 5 * second, 8 * second}},
		{"a small retry", 3, func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, "retry: 10\n\n") }, []time.Duration{10 * time.Millisecond, 2 * second, 4 * second}},
		{"the same id", 2, func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, "id: 1\ndata:\n\n") }, []time.Duration{second, 2 * second}},
		{"progress", 2, func(w http.ResponseWriter, r *http.Request, h *hit) {
			if h.n > 1 && h.header.Get("Last-Event-ID") != fmt.Sprint(h.n-1) {
				w.WriteHeader(400)
				return
			}
			events(w, fmt.Sprintf("id: %d\ndata:\n\n", h.n))
		}, nil},
		{"messages", 2, func(w http.ResponseWriter, r *http.Request, h *hit) {
			events(w, `data: {"jsonrpc":"2.0","method":"notifications/mine"}`+"\n\n")
		}, nil},
		{"idle", 2, func(w http.ResponseWriter, r *http.Request, h *hit) {
			events(w, "")
			select {
			case <-time.After(time.Minute):
			case <-r.Context().Done():
			}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHTTP{t: t}
				f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
					if h.verb == "GET" {
						c.get(w, r, h)
					}
					return h.verb == "GET"
				}
				cs := f.legacySession(t, func(h *HTTP) { h.Retries = c.retries })
				time.Sleep(time.Hour)
				gaps := f.gaps("GET")
				if c.gaps == nil && len(gaps) < 50 {
					t.Errorf("asked for only %d times", len(gaps)+1)
				} else if c.gaps != nil && len(gaps) != len(c.gaps) {
					t.Fatalf("asked for after %v", gaps)
				}
				for i, want := range c.gaps {
					if gaps[i] < want || gaps[i] > want+want/4 {
						t.Errorf("asked for after %v", gaps)
					}
				}
				if text, err := callText(cs, "t"); text != "ok" || err != nil {
					t.Errorf("a call: %q, %v", text, err)
				}
				time.Sleep(500 * time.Millisecond)
				if more := len(f.gaps("GET")) > len(gaps); c.gaps != nil && !more { // a server that answers is worth another try
					t.Errorf("not asked for after a call")
				}
				cs.Close()
			})
		})
	}
}

// The stream of a call that breaks: before 2026-07-28 it is taken up again by
// GET, then it is lost.
func TestHTTPClientCutStream(t *testing.T) {
	shows(t, "http.resume.get", "http.resume.via-get-only", "http.sse.poll", "http.sse.retry-respect", "http.sse.prime-tolerated", "http.sse.lost-stream", "http.sse.no-resume", "http.streams.multiple")
	note := `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}` + "\n\n"
	synctest.Test(t, func(t *testing.T) {
		for _, modern := range []bool{false, true} {
			var call *hit
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				last := h.header.Get("Last-Event-ID")
				switch {
				case h.method == "tools/call" && h.n == 1:
					call = h
					events(w, "id: a\nretry: 700\ndata:\n\nid: b\n"+fmt.Sprintf(note, 1))
				case h.verb == "GET" && last == "b":
					events(w, "id: c\n"+fmt.Sprintf(note, 2))
					panic(http.ErrAbortHandler)
				case h.verb == "GET" && last == "c" && len(f.of("GET")) == 3:
					w.WriteHeader(503)
				case h.verb == "GET" && last == "c":
					events(w, fmt.Sprintf(note, 3)+sseResult(call, okResult))
				default:
					return false
				}
				return true
			}
			var got []string
			opts := &ClientOptions{Log: func(_ context.Context, p *LogParams) { got = append(got, string(p.Data)) }}
			if !modern {
				f.versions, opts.Versions = []string{Version20251125}, sessionVersions
			}
			cs := f.connect(t, opts, f.transport())
			time.Sleep(time.Second)
			before := len(f.kinds())
			text, err := callText(cs, "t")
			switch kinds := f.kinds()[before:]; {
			case modern && (err == nil || !strings.Contains(err.Error(), "the connection was lost before tools/call was answered") || !errors.Is(err, io.ErrUnexpectedEOF) || len(kinds) != 1):
				t.Errorf("modern: %q, %v, asked for %q", text, err, kinds)
			case !modern && (text != "ok" || err != nil || !slices.Equal(kinds, []string{"POST tools/call", "GET", "GET", "GET"}) || !slices.Equal(got, []string{"1", "2", "3"})):
				t.Errorf("legacy: %q, %v, asked for %q, told %q", text, err, kinds, got)
			case !modern:
				all := f.all()
				if d := all[before+1].at.Sub(all[before].at); d < 700*time.Millisecond || d > time.Second {
					t.Errorf("taken up after %v", d)
				}
			}
			text, err = callText(cs, "t")
			calls := f.of("POST tools/call")
			if text != "ok" || err != nil || calls[0].id == calls[1].id {
				t.Errorf("the next call: %q, %v", text, err)
			}
			for _, h := range f.all() {
				if modern && (h.verb == "GET" || h.header["Last-Event-Id"] != nil) {
					t.Errorf("%s with %q", h.kind(), h.header)
				}
			}
			cs.Close()
		}
	})
}

// A stream that cannot be taken up fails its call, and soon enough.
func TestHTTPClientCannotResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{400, 401, 404, 405, 500} {
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.method == "tools/call" && h.name() == "cut":
					events(w, "id: a\ndata:\n\n")
				case h.verb == "GET" && h.header["Last-Event-Id"] != nil:
					w.WriteHeader(status)
				default:
					return false
				}
				return true
			}
			cs := f.legacySession(t, nil)
			_, err := callText(cs, "cut")
			var e *HTTPError
			if !errors.As(err, &e) || e.Status != status || !strings.Contains(err.Error(), "could not be taken up again") {
				t.Errorf("%d: %v", status, err)
			}
			if text, err := callText(cs, "t"); text != "ok" || err != nil {
				t.Errorf("%d: the next call: %q, %v", status, text, err)
			}
			cs.Close()
		}
	})
}

func TestHTTPClientErrors(t *testing.T) {
	for _, versions := range [][]string{nil, {Version20251125}} {
		for name, c := range map[string]struct {
			fail   func(w http.ResponseWriter, h *hit)
			status int
			code   int
			text   string
		}{
			"400 and an error": {func(w http.ResponseWriter, h *hit) {
				reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32602,"message":"no such tool"}}`)
			}, 400, -32602, "no such tool"},
			"an error without id": {func(w http.ResponseWriter, h *hit) {
				reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`)
			}, 400, -32000, "no"},
			"200 and an error without id": {func(w http.ResponseWriter, h *hit) {
				reply(w, 200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`)
			}, 0, -32000, "no"},
			"404 and no such method": {func(w http.ResponseWriter, h *hit) {
				reply(w, 404, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32601,"message":"no such method"}}`)
			}, 404, -32601, "no such method"},
			"429":  {func(w http.ResponseWriter, h *hit) { reply(w, 429, "text/plain", "slow down") }, 429, 0, "slow down"},
			"500":  {func(w http.ResponseWriter, h *hit) { reply(w, 500, "text/plain", "it broke") }, 500, 0, "it broke"},
			"503":  {func(w http.ResponseWriter, h *hit) { reply(w, 503, "", "") }, 503, 0, "503 Service Unavailable"},
			"599":  {func(w http.ResponseWriter, h *hit) { reply(w, 599, "", "") }, 599, 0, "is 599,"},
			"gone": {func(w http.ResponseWriter, h *hit) { panic(http.ErrAbortHandler) }, 0, 0, "fake.example"},
			"an error in a stream": {func(w http.ResponseWriter, h *hit) {
				events(w, `data: {"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32603,"message":"it broke"}}`+"\n\n")
			}, 0, -32603, "it broke"},
			"an error without id in a stream": {func(w http.ResponseWriter, h *hit) {
				events(w, `data: {"jsonrpc":"2.0","error":{"code":-32603,"message":"it broke"}}`+"\n\n")
			}, 0, -32603, "it broke"},
		} {
			f := &fakeHTTP{t: t, versions: versions}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				if h.name() == "fail" {
					c.fail(w, h)
				}
				return h.name() == "fail"
			}
			cs := f.connect(t, nil, f.transport())
			var status *HTTPError
			var peer *Error
			_, err := callText(cs, "fail")
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", name, err)
			}
			if got := errors.As(err, &status); got != (c.status != 0) || got && (status.Status != c.status || status.Method != "tools/call") {
				t.Errorf("%s: status of %v", name, err)
			}
			if got := errors.As(err, &peer); got != (c.code != 0) || got && peer.Code != c.code {
				t.Errorf("%s: code of %v", name, err)
			}
			if text, err := callText(cs, "t"); text != "ok" || err != nil {
				t.Errorf("%s: the next call: %q, %v", name, text, err)
			}
			if n := len(f.of("POST initialize")); n > 1 {
				t.Errorf("%s: initialize was sent %d times", name, n)
			}
		}
	}
}

func TestHTTPClientLostSession(t *testing.T) {
	shows(t, "http.session.reinitialize", "http.session.echo")
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHTTP{t: t}
		waiting := make(chan bool)
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			switch {
			case h.verb == "GET":
				f.mu.Lock()
				known := h.header.Get("Mcp-Session-Id") == f.live
				f.mu.Unlock()
				if !known {
					return false
				}
				events(w, "id: x\ndata:\n\n")
				<-r.Context().Done()
			case h.method == "tools/call" && h.name() == "slow" && h.header.Get("Mcp-Session-Id") == "session-number-1":
				<-waiting // and then the server forgot
				w.WriteHeader(404)
			case h.method == "tools/call":
				w.Header().Set("Mcp-Session-Id", "not-from-initialize")
				return false
			default:
				return false
			}
			return true
		}
		cs := f.legacySession(t, nil)
		ctx := context.Background()
		if err := cs.SetLogLevel(ctx, "warning"); err != nil {
			t.Fatal(err)
		}
		sub, err := cs.Listen(ctx, SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"file:///a"}})
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				if text, err := callText(cs, "slow"); text != "ok" || err != nil {
					t.Errorf("a call in flight: %q, %v", text, err)
				}
			})
		}
		synctest.Wait()
		f.lose()
		close(waiting)
		calls.Wait()
		time.Sleep(time.Second)
		inits := f.of("POST initialize")
		if len(inits) != 2 || inits[1].header["Mcp-Session-Id"] != nil || inits[1].header["Mcp-Protocol-Version"] != nil || inits[0].body != inits[1].body {
			t.Fatalf("asked for %q", f.kinds())
		}
		again := map[string]int{}
		for _, h := range f.all()[slices.Index(f.all(), inits[1])+1:] {
			again[h.kind()]++
			if h.header.Get("Mcp-Session-Id") != "session-number-2" || h.header.Get("Mcp-Protocol-Version") != Version20251125 {
				t.Errorf("%s after it with %q", h.kind(), h.header)
			}
		}
		if want := map[string]int{"POST notifications/initialized": 1, "POST tools/call": 5, "GET": 1, "POST logging/setLevel": 1, "POST resources/subscribe": 1}; !reflect.DeepEqual(again, want) {
			t.Errorf("after it %v", again)
		}
		var changes []Change
		for c, err := range sub.Events(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if changes = append(changes, c); len(changes) == 2 {
				break
			}
		}
		if !slices.Contains(changes, Change{Method: notifyToolsChanged}) || !slices.Contains(changes, Change{notifyResourceUpdated, "file:///a"}) {
			t.Errorf("changes %v", changes)
		}
		cs.Close()
		if got := f.of("DELETE"); len(got) != 1 || got[0].header.Get("Mcp-Session-Id") != "session-number-2" {
			t.Errorf("%d times DELETE", len(got))
		}
	})
}

// The stream of the server's own hears first that the session is lost.
func TestHTTPClientLostSessionByStream(t *testing.T) {
	shows(t, "http.session.reinitialize")
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHTTP{t: t}
		cut := make(chan bool)
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			if h.verb != "GET" || h.n == 2 {
				return false
			}
			events(w, "id: x\ndata:\n\n")
			select {
			case <-cut:
			case <-r.Context().Done():
			}
			return true
		}
		cs := f.legacySession(t, nil)
		time.Sleep(time.Minute)
		f.lose()
		close(cut)
		time.Sleep(time.Hour)
		kinds := f.kinds()[2:]
		if len(f.of("POST initialize")) != 2 || len(kinds) > 20 {
			t.Errorf("asked for %q", kinds)
		}
		if gets := f.of("GET"); len(gets) < 3 || gets[2].header["Last-Event-Id"] != nil || gets[2].header.Get("Mcp-Session-Id") != "session-number-2" {
			t.Errorf("asked for %q", kinds)
		}
		cs.Close()
	})
}

// A server that goes on losing sessions costs each call one renewal.
func TestHTTPClientLosesForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			switch {
			case h.method == "initialize" && down.Load():
				w.WriteHeader(503)
			case h.name() == "lost", h.verb == "GET":
				w.WriteHeader(404)
			default:
				return false
			}
			return true
		}
		cs := f.legacySession(t, nil)
		for n := 1; n <= 3; n++ {
			_, err := callText(cs, "lost")
			var e *HTTPError
			if !errors.As(err, &e) || e.Status != 404 || len(f.of("POST tools/call")) != 2*n || len(f.of("POST initialize")) != n+1 {
				t.Errorf("%v, asked for %q", err, f.kinds())
			}
		}
		down.Store(true)
		for n := 1; n <= 3; n++ { // each call tries again
			_, err := callText(cs, "lost")
			if err == nil || !strings.Contains(err.Error(), "lost the session, and opens no other") || len(f.of("POST initialize")) != n+4 {
				t.Errorf("%v, asked for %q", err, f.kinds())
			}
		}
		down.Store(false)
		if text, err := callText(cs, "t"); text != "ok" || err != nil {
			t.Errorf("after it: %q, %v", text, err)
		}
		f.lose() // and it speaks another revision now
		f.versions = []string{Version20250618}
		if _, err := callText(cs, "t"); err == nil || !strings.Contains(err.Error(), "another revision") {
			t.Errorf("another revision: %v", err)
		}
		cs.Close()
	})
}

// countConnections counts the connections that a server gets.
func countConnections(server *httptest.Server) *atomic.Int32 {
	n := new(atomic.Int32)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	return n
}

func TestHTTPClientUsesFewConnections(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(w http.ResponseWriter, r *http.Request, h *hit)
		http2 bool
		max   int32
	}{
		"JSON":   {do: func(w http.ResponseWriter, r *http.Request, h *hit) { result(w, h, okResult) }, max: 5},
		"stream": {do: func(w http.ResponseWriter, r *http.Request, h *hit) { events(w, sseResult(h, okResult)) }, max: 20},
		"left over": {do: func(w http.ResponseWriter, r *http.Request, h *hit) {
			events(w, sseResult(h, okResult)+strings.Repeat(": more\n", 500))
		}, max: 20},
		"refused": {do: func(w http.ResponseWriter, r *http.Request, h *hit) {
			reply(w, 404, "text/html", strings.Repeat("not here ", 1000))
		}, max: 5},
		"HTTP/2": {do: func(w http.ResponseWriter, r *http.Request, h *hit) { result(w, h, okResult) }, http2: true, max: 1},
		"HTTP/2, open": {do: func(w http.ResponseWriter, r *http.Request, h *hit) {
			events(w, sseResult(h, okResult))
			<-r.Context().Done()
		}, http2: true, max: 1},
	} {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				if h.method == "tools/call" {
					c.do(w, r, h)
				}
				if c.http2 && r.ProtoMajor != 2 {
					t.Errorf("HTTP/%d", r.ProtoMajor)
				}
				return h.method == "tools/call"
			}
			server := httptest.NewUnstartedServer(f)
			n := countConnections(server)
			server.EnableHTTP2 = c.http2
			transport := &HTTP{}
			if c.http2 {
				server.StartTLS()
				transport.Client = server.Client()
			} else {
				server.Start()
			}
			defer server.Close()
			transport.URL = server.URL
			cs := f.connect(t, nil, transport)
			calls := 1000
			if strings.HasSuffix(name, "open") {
				calls = 50
			}
			for range calls {
				if text, err := callText(cs, "t"); (text != "ok" || err != nil) != (name == "refused") {
					t.Fatalf("%q, %v", text, err)
				}
			}
			began := time.Now()
			cs.Close()
			if d := time.Since(began); d > time.Second {
				t.Errorf("Close took %v", d)
			}
			if n.Load() > c.max {
				t.Errorf("%d connections for %d calls", n.Load(), calls)
			}
		})
	}
}

// bodies is an http.RoundTripper that counts the bodies that are open.
type bodies struct {
	inner http.RoundTripper
	open  atomic.Int32
}

type countedBody struct {
	io.ReadCloser
	once *sync.Once
	open *atomic.Int32
}

func (b countedBody) Close() error {
	b.once.Do(func() { b.open.Add(-1) })
	return b.ReadCloser.Close()
}

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.inner.RoundTrip(r)
	if err == nil {
		b.open.Add(1)
		response.Body = countedBody{response.Body, new(sync.Once), &b.open}
	}
	return response, err
}

func TestHTTPClientClosesBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			switch name := h.name(); {
			case name == "hang":
				<-r.Context().Done()
			case name == "stream":
				events(w, ": hi\n\n")
				<-r.Context().Done()
			case name == "cut":
				events(w, "id: 1\ndata:\n\n")
			case strings.HasPrefix(name, "4"), strings.HasPrefix(name, "5"), strings.HasPrefix(name, "3"):
				events(w, "") // 200, but then
				w.WriteHeader(500)
			case h.verb == "GET":
				events(w, "")
				<-r.Context().Done()
			default:
				return false
			}
			return true
		}
		b := &bodies{inner: direct{f}}
		cs := f.legacySession(t, func(h *HTTP) { h.Client = &http.Client{Transport: b} })
		for _, name := range []string{"t", "400", "hang", "stream", "cut", "t"} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			cs.CallTool(ctx, name, nil)
			cancel()
		}
		time.Sleep(2 * time.Minute)
		if n := b.open.Load(); n != 1 { // the server's own stream
			t.Errorf("%d bodies are open", n)
		}
		cs.Close()
		if n := b.open.Load(); n != 0 {
			t.Errorf("%d bodies are open after Close", n)
		}
	})
}

func TestHTTPClientRedirects(t *testing.T) {
	var foreign atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { foreign.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL + "/mcp", "/elsewhere", "/mcp?loop"} {
			f := &fakeHTTP{t: t, versions: []string{Version20251125}}
			var verbs []string
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				if r.URL.Path == "/elsewhere" {
					verbs = append(verbs, h.verb)
				}
				if h.name() != "moved" || r.URL.Path == "/elsewhere" {
					return false
				}
				w.Header().Set("Location", to)
				w.WriteHeader(status)
				return true
			}
			server := httptest.NewServer(f)
			asked := 0
			cs := f.connect(t, nil, &HTTP{
				URL: server.URL + "/mcp", Header: http.Header{"X-Api-Key": {"k"}}, NoStream: true,
				Client: &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error { asked++; return nil }},
			})
			text, err := callText(cs, "moved")
			follows := to == "/elsewhere" && status >= 307
			var e *HTTPError
			if follows && (text != "ok" || err != nil || !slices.Equal(verbs, []string{"POST"}) || asked != 1) {
				t.Errorf("%d to %s: %q, %v, %q, CheckRedirect %d", status, to, text, err, verbs, asked)
			}
			if !follows && (!errors.As(err, &e) || e.Status != status || len(verbs) != 0) {
				t.Errorf("%d to %s: %v, %q", status, to, err, verbs)
			}
			cs.Close()
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			server.Close()
		}
	}
	if foreign.Load() != 0 {
		t.Errorf("another origin got %d requests", foreign.Load())
	}
}

func TestHTTPClientCancels(t *testing.T) {
	shows(t, "http.cancel.client-closes", "http.cancel.explicit-legacy", "cancel.send", "cancel.initialize")
	synctest.Test(t, func(t *testing.T) {
		for _, versions := range [][]string{nil, {Version20250618}} {
			for _, streaming := range []bool{false, true} {
				closed := make(chan bool, 1)
				f := &fakeHTTP{t: t, versions: versions}
				f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
					if h.name() != "hang" {
						return false
					}
					if streaming {
						events(w, ": hi\n\n")
					}
					<-r.Context().Done()
					closed <- true
					return true
				}
				cs := f.connect(t, nil, f.transport())
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				before := len(f.kinds())
				_, err := cs.CallTool(ctx, "hang", nil)
				cancel()
				synctest.Wait()
				kinds := f.kinds()[before:]
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				if versions == nil {
					if !slices.Equal(kinds, []string{"POST tools/call"}) || len(closed) != 1 {
						t.Errorf("modern: asked for %q, closed %d", kinds, len(closed))
					}
				} else if note := f.of("POST notifications/cancelled"); len(kinds) != 2 || len(note) != 1 || string(rawMember(note[0].params, "requestId")) != f.of("POST tools/call")[0].id.raw || len(closed) != 0 {
					t.Errorf("legacy: asked for %q, closed %d", kinds, len(closed))
				}
				time.Sleep(time.Minute) // a server that does not end the POST is not waited for
				if len(closed) != 1 {
					t.Error("the POST is still open")
				}
				cs.Close()
			}
		}
		// Neither is initialize cancelled.
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool { <-r.Context().Done(); return true }
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: sessionVersions}).Connect(ctx, f.transport()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if kinds := f.kinds(); !slices.Equal(kinds, []string{"POST initialize"}) {
			t.Errorf("asked for %q", kinds)
		}
	})
}

// listenStream writes the acknowledgement of a subscription.
func listenStream(w http.ResponseWriter, h *hit) {
	events(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`+h.id.raw+`},"notifications":`+string(rawMember(h.params, "notifications"))+"}}\n\n")
}

func TestHTTPClientListensAgain(t *testing.T) {
	shows(t, "subs.stdio.relisten", "subs.close.abrupt", "http.sse.lost-stream", "caching.invalidate")
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHTTP{t: t}
		cut := make(chan string)
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			if h.method != "subscriptions/listen" {
				return false
			}
			if h.n == 3 {
				w.WriteHeader(503)
				return true
			}
			listenStream(w, h)
			select {
			case text := <-cut:
				if text == "end" {
					io.WriteString(w, sseResult(h, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":`+h.id.raw+`}}`))
				}
			case <-r.Context().Done():
			}
			return true
		}
		cs := f.connect(t, nil, f.transport())
		ctx := context.Background()
		sub, err := cs.Listen(ctx, SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"file:///a"}})
		if err != nil {
			t.Fatal(err)
		}
		var changes []string
		done := make(chan error)
		go func() {
			for c, err := range sub.Events(ctx) {
				if err != nil {
					done <- err
					return
				}
				changes = append(changes, c.Method+c.URI)
			}
			done <- nil
		}()
		for range cs.Tools(ctx) {
		}
		time.Sleep(time.Minute)
		for range 2 {
			cut <- ""
			time.Sleep(time.Minute)
		}
		for range cs.Tools(ctx) { // what was kept may be stale
		}
		cut <- "end"
		if err := <-done; err != nil {
			t.Errorf("ended in order: %v", err)
		}
		slices.Sort(changes)
		if want := []string{"notifications/resources/updatedfile:///a", "notifications/resources/updatedfile:///a", "notifications/tools/list_changed", "notifications/tools/list_changed"}; !slices.Equal(changes, want) {
			t.Errorf("changes %q", changes)
		}
		if n := len(f.of("POST tools/list")); n != 2 {
			t.Errorf("the list was asked for %d times", n)
		}
		ids := map[string]bool{}
		for _, h := range f.of("POST subscriptions/listen") {
			ids[h.id.raw] = true
		}
		if len(ids) != 4 {
			t.Errorf("ids %v", ids)
		}
		if gaps := f.gaps("POST subscriptions/listen"); len(gaps) != 3 || gaps[0] < 61*time.Second || gaps[1] < 59*time.Second || gaps[2] < 2*time.Second {
			t.Errorf("asked for after %v", gaps)
		}
		cs.Close()
	})
}

// A subscription that goes on being lost ends with an error, and one can be
// closed at any time.
func TestHTTPClientListensAgainWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			times  int
			closes bool // the test closes it meanwhile
			again  func(w http.ResponseWriter, h *hit)
		}{
			"cut at once": {6, false, func(w http.ResponseWriter, h *hit) { listenStream(w, h) }},
			"down":        {6, false, func(w http.ResponseWriter, h *hit) { w.WriteHeader(503) }},
			"401":         {2, false, func(w http.ResponseWriter, h *hit) { w.WriteHeader(401) }},
			"404":         {2, false, func(w http.ResponseWriter, h *hit) { w.WriteHeader(404) }},
			"an error": {2, false, func(w http.ResponseWriter, h *hit) {
				events(w, `data: {"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32603,"message":"no"}}`+"\n\n")
			}},
			"closed": {2, true, func(w http.ResponseWriter, h *hit) { w.WriteHeader(503) }},
		} {
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.method != "subscriptions/listen":
					return false
				case h.n == 1:
					listenStream(w, h)
				default:
					c.again(w, h)
				}
				return true
			}
			cs := f.connect(t, nil, f.transport())
			sub, err := cs.Listen(context.Background(), SubscriptionFilter{ToolsListChanged: true})
			if err != nil {
				t.Fatal(err)
			}
			if c.closes {
				time.Sleep(1500 * time.Millisecond)
				began := time.Now()
				sub.Close()
				if d := time.Since(began); d > 0 {
					t.Errorf("%s: Close took %v", name, d)
				}
			}
			for _, err = range sub.Events(context.Background()) {
			}
			if (err == nil) != c.closes || len(f.of("POST subscriptions/listen")) != c.times {
				t.Errorf("%s: %v, asked %d times", name, err, len(f.of("POST subscriptions/listen")))
			}
			cs.Close()
		}
	})
}

func TestHTTPClientCloses(t *testing.T) {
	shows(t, "http.session.delete", "http.session.delete-405", "http.get.close-any")
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			end func(w http.ResponseWriter, r *http.Request)
			max time.Duration
		}{
			"200":    {func(w http.ResponseWriter, r *http.Request) {}, 0},
			"405":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(405) }, 0},
			"404":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }, 0},
			"silent": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, closeTime},
			"gone":   {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, 0},
		} {
			f := &fakeHTTP{t: t}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.verb == "DELETE":
					c.end(w, r)
				case h.verb == "GET", h.name() == "stream":
					events(w, ": open\n\n")
					<-r.Context().Done()
				case h.name() == "hang":
					<-r.Context().Done()
				case h.name() == "cut":
					events(w, "retry: 3600000\nid: 1\n\n")
				default:
					return false
				}
				return true
			}
			cs := f.legacySession(t, nil)
			var calls sync.WaitGroup
			for _, name := range []string{"stream", "hang", "cut", "hang", "stream"} {
				calls.Go(func() {
					if _, err := callText(cs, name); !errors.Is(err, ErrClosed) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			time.Sleep(time.Second)
			cs.Notify(context.Background(), "notifications/last", nil)
			began := time.Now()
			if err := cs.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if d := time.Since(began); d > c.max {
				t.Errorf("%s: Close took %v", name, d)
			}
			calls.Wait()
			if kinds := f.kinds(); kinds[len(kinds)-1] != "DELETE" || len(f.of("DELETE")) != 1 || len(f.of("POST notifications/last")) != 1 {
				t.Errorf("%s: asked for %q", name, kinds)
			}
			if _, err := callText(cs, "t"); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

// The same with a real network, which has descriptors and goroutines of its
// own, over HTTP/2, too, and at 2026-07-28.
func TestHTTPClientClosesConnections(t *testing.T) {
	for _, versions := range [][]string{nil, {Version20251125}} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprint(versions, http2), func(t *testing.T) {
				leakCheck(t)
				f := &fakeHTTP{t: t, versions: versions}
				f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
					switch {
					case h.method == "subscriptions/listen":
						listenStream(w, h)
					case h.verb == "GET", h.name() == "stream":
						events(w, ": open\n\n")
					case h.name() != "hang":
						return false
					}
					<-r.Context().Done()
					return true
				}
				server := httptest.NewUnstartedServer(f)
				server.EnableHTTP2 = http2
				server.StartTLS()
				defer server.Close()
				cs := f.connect(t, nil, &HTTP{URL: server.URL, Client: server.Client()})
				if _, err := cs.Listen(context.Background(), SubscriptionFilter{ToolsListChanged: true}); err != nil {
					t.Fatal(err)
				}
				var calls sync.WaitGroup
				for range 10 {
					for _, name := range []string{"stream", "hang"} {
						calls.Go(func() { callText(cs, name) })
					}
				}
				waitUntil(t, "the calls", func() bool { return len(f.of("POST tools/call")) == 20 })
				began := time.Now()
				cs.Close()
				calls.Wait()
				if d := time.Since(began); d > closeTime {
					t.Errorf("Close took %v", d)
				}
			})
		}
	}
}

func TestHTTPClientKeepsSecrets(t *testing.T) {
	shows(t, "http.session.client-care")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			all := fmt.Sprint(h.header["Mcp-Session-Id"], " ", h.header.Get("Mcp-Session-Id"))
			switch {
			case h.method == "tools/call" && h.name() == "gone":
				panic(http.ErrAbortHandler)
			case h.method == "tools/call" && h.name() == "json":
				reply(w, 500, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32603,"message":"in `+h.header.Get("Mcp-Session-Id")+`"}}`)
			case h.method == "tools/call":
				reply(w, 404, "text/plain", "there is no session "+all)
			case h.verb == "GET" && h.n > 1, h.method == "notifications/mine":
				reply(w, 500, "text/plain", "session "+all)
			case h.verb == "GET":
				events(w, "")
			default:
				return false
			}
			return true
		}
		f.versions = []string{Version20251125}
		transport := f.transport()
		transport.URL = "http://user:pass-secret@fake.example/mcp?key=key-secret"
		transport.Header = http.Header{"X-Api-Key": {"header-secret"}}
		transport.Logger = logger
		cs := f.connect(t, &ClientOptions{Logger: logger}, transport)
		cs.Notify(context.Background(), "notifications/mine", nil)
		var texts []string
		for _, name := range []string{"gone", "json", "404"} {
			_, err := callText(cs, name)
			var e *HTTPError
			if errors.As(err, &e) {
				texts = append(texts, e.Body)
			}
			texts = append(texts, fmt.Sprintf("%v %+v", err, err))
		}
		time.Sleep(time.Hour)
		cs.Close()
		_, err := (&HTTP{URL: "ftp://user:pass-secret@h/?key-secret"}).Connect(context.Background())
		texts = append(texts, err.Error())
		_, err = (&HTTP{URL: "http://user:pass-secret@h:port/?key-secret"}).Connect(context.Background())
		texts = append(texts, err.Error(), log.String())
		if !strings.Contains(log.String(), "not delivered") || !strings.Contains(log.String(), "stream is lost") {
			t.Errorf("the log lacks something:\n%s", &log)
		}
		for _, text := range texts {
			for _, secret := range []string{"session-number", "-secret"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s is in %s", secret, text)
				}
			}
		}
	})
}

// tokens is an Authorizer with one token after the other.
type tokens struct {
	mu         sync.Mutex
	now        int
	challenged []int // statuses
	refuse     error
	again      bool
	authorize  error
}

func (a *tokens) Authorize(_ context.Context, r *http.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Header.Set("Authorization", fmt.Sprintf("Bearer token-%d", a.now))
	return a.authorize
}

func (a *tokens) Challenge(_ context.Context, r *http.Response) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now++
	a.challenged = append(a.challenged, r.StatusCode)
	if r.Header.Get("WWW-Authenticate") == "" {
		return false, errors.New("no challenge")
	}
	return a.again, a.refuse
}

func TestHTTPClientAuthorizes(t *testing.T) {
	broken := errors.New("the user said no")
	for name, c := range map[string]struct {
		auth   *tokens
		status int
		good   string // the token that the server takes
		ok     bool
		n      int // requests of the first message
		err    error
	}{
		"good":               {&tokens{}, 401, "token-0", true, 1, nil},
		"once more":          {&tokens{again: true}, 401, "token-1", true, 2, nil},
		"403, once more":     {&tokens{again: true}, 403, "token-1", true, 2, nil},
		"never again":        {&tokens{}, 401, "token-9", false, 1, nil},
		"no loop":            {&tokens{again: true}, 401, "token-9", false, 1 + maxChallenges, nil},
		"403, no loop":       {&tokens{again: true}, 403, "token-9", false, 1 + maxChallenges, nil},
		"the challenge":      {&tokens{refuse: broken, again: true}, 401, "token-9", false, 1, broken},
		"no credentials":     {&tokens{authorize: broken}, 401, "token-0", false, 0, broken},
		"401 without tokens": {nil, 401, "token-0", false, 1, nil},
	} {
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			if h.header.Get("Authorization") == "Bearer "+c.good {
				return false
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			reply(w, c.status, "application/json", `{"jsonrpc":"2.0","id":`+h.id.raw+`,"error":{"code":-32001,"message":"who?"}}`)
			return true
		}
		transport := f.transport()
		if c.auth != nil {
			transport.Auth = c.auth
		}
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), transport)
		if err == nil {
			cs.Close()
		}
		var e *HTTPError
		switch {
		case (err == nil) != c.ok || len(f.all()) != c.n || c.err != nil && !errors.Is(err, c.err):
			t.Errorf("%s: %v, asked for %q", name, err, f.kinds())
		case !c.ok && c.err == nil && (!errors.As(err, &e) || e.Status != c.status):
			t.Errorf("%s: %v", name, err)
		}
		if hits := f.all(); len(hits) == 2 && hits[0].body != hits[1].body {
			t.Errorf("%s: another body the second time", name)
		}
	}
}

// A slowUser takes nine minutes to sign in.
type slowUser struct{ tokens }

func (a *slowUser) Challenge(ctx context.Context, r *http.Response) (bool, error) {
	select {
	case <-time.After(9 * time.Minute):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return a.tokens.Challenge(ctx, r)
}

// A call does not time out while its user signs in; afterwards its time begins
// anew.
func TestHTTPClientWaitsForTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			switch h.header.Get("Authorization") {
			case "Bearer token-0":
				w.Header().Set("WWW-Authenticate", "Bearer")
				w.WriteHeader(401)
				return true
			case "Bearer token-1":
				time.Sleep(50 * time.Second) // within the timeout
			}
			return false
		}
		transport := f.transport()
		transport.Auth = &slowUser{tokens{again: true}}
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), transport)
		if err != nil {
			t.Fatal(err)
		}
		cs.Close()
	})
}

// Credentials are asked for with every request: the stream, notifications and
// DELETE, too; one failure of theirs fails one call.
func TestHTTPClientAuthorizesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &tokens{}
		f := &fakeHTTP{t: t}
		cs := f.legacySession(t, func(h *HTTP) { h.Auth = auth })
		callText(cs, "t")
		auth.mu.Lock()
		auth.authorize = errors.New("the user said no")
		auth.mu.Unlock()
		if _, err := callText(cs, "t"); !errors.Is(err, auth.authorize) {
			t.Error(err)
		}
		auth.mu.Lock()
		auth.authorize = nil
		auth.mu.Unlock()
		if _, err := callText(cs, "t"); err != nil {
			t.Error(err)
		}
		cs.Close()
		for _, h := range f.all() {
			if h.header.Get("Authorization") != "Bearer token-0" {
				t.Errorf("%s without credentials", h.kind())
			}
		}
		if kinds := f.kinds(); len(kinds) != 6 {
			t.Errorf("asked for %q", kinds)
		}
	})
}

// What a client of the user's says counts: its Timeout, its Transport, its
// Jar.
func TestHTTPClientUsesTheUsersClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			if h.name() == "hang" {
				<-r.Context().Done()
			}
			return h.name() == "hang"
		}
		transport := f.transport()
		transport.Client.Timeout = time.Second
		cs := f.connect(t, nil, transport)
		began := time.Now()
		if _, err := callText(cs, "hang"); err == nil || time.Since(began) != time.Second || errors.Is(err, ErrClosed) {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if text, err := callText(cs, "t"); text != "ok" || err != nil {
			t.Errorf("the next call: %q, %v", text, err)
		}
		if transport.Client.CheckRedirect != nil {
			t.Error("the user's client was changed")
		}
		cs.Close()
	})
}

// What the server asks and tells on the stream of a call.
func TestHTTPClientHearsTheServer(t *testing.T) {
	shows(t, "http.post.client-responses", "http.streams.multiple", "batch.sse.batched-replies", "batch.post.body", "batch.initialize-excluded")
	synctest.Test(t, func(t *testing.T) {
		for _, version := range []string{Version20250326, Version20251125} {
			asks := `{"jsonrpc":"2.0","id":"q1","method":"roots/list"}`
			tells := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
			responses := make(chan *hit, 4)
			f := &fakeHTTP{t: t, versions: []string{version}}
			f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
				switch {
				case h.method == "tools/call" && version == Version20250326:
					answer := `{"jsonrpc":"2.0","id":` + h.id.raw + `,"result":{"content":[{"type":"text","text":"ok"}]}}`
					events(w, "data: ["+asks+","+tells+",{\"jsonrpc\":\"2.0\",\"id\":\"q2\",\"method\":\"ping\"}]\n\n")
					<-responses
					events(w, "id: 1\ndata: ["+tells+","+answer+"]\n\n")
				case h.method == "tools/call":
					events(w, "data: "+asks+"\n\ndata: "+tells+"\n\n")
					<-responses
					events(w, "data: "+tells+"\n\n"+sseResult(h, okResult))
				case h.verb == "POST" && h.method == "":
					w.WriteHeader(202)
					responses <- h
				default:
					return false
				}
				return true
			}
			told := 0
			cs := f.connect(t, &ClientOptions{
				Versions: sessionVersions, Log: func(context.Context, *LogParams) { told++ },
				Roots: func(context.Context) ([]Root, error) { return []Root{{URI: "file:///r"}}, nil },
			}, f.transport())
			time.Sleep(time.Second)
			if text, err := callText(cs, "t"); text != "ok" || err != nil || told != 2 {
				t.Errorf("%s: %q, %v, told %d", version, text, err, told)
			}
			time.Sleep(time.Hour)
			if n := len(f.of("GET")); n != 1 { // the stream needs no taking up
				t.Errorf("%s: %d times GET", version, n)
			}
			for _, h := range f.all() {
				members, batch := splitBatch([]byte(h.body))
				if h.verb == "POST" && h.method == "" && (!strings.Contains(h.body, `"q1"`) || h.header.Get("Mcp-Session-Id") != "session-number-1") {
					t.Errorf("%s: an answer: %s", version, h.body)
				}
				if batch != (version == Version20250326 && h.verb == "POST" && h.method == "") {
					t.Errorf("%s: %s", version, h.body)
				}
				if !batch {
					continue
				}
				for member := range members {
					if _, isResponse, bad := decodeMessage(member); !isResponse || bad != nil {
						t.Errorf("%s: %s", version, h.body)
					}
				}
			}
			cs.Close()
		}
	})
}

func TestHTTPClientSharesNothing(t *testing.T) {
	shows(t, "caching.scope.private")
	f := &fakeHTTP{t: t}
	ctx := context.Background()
	client := NewClient(Implementation{Name: "c", Version: "1"}, nil)
	for _, token := range []string{"Bearer a", "Bearer b"} {
		transport := f.transport()
		transport.Header = http.Header{"Authorization": {token}}
		cs, err := client.Connect(ctx, transport)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for range cs.Tools(ctx) {
			}
		}
		cs.Close()
	}
	lists := f.of("POST tools/list")
	if len(lists) != 2 || lists[0].header.Get("Authorization") == lists[1].header.Get("Authorization") {
		t.Errorf("asked for %q", f.kinds())
	}
}

// With many messages at once each call gets its own answer.
func TestHTTPClientManyCalls(t *testing.T) {
	for _, versions := range [][]string{nil, {Version20251125}} {
		f := &fakeHTTP{t: t, versions: versions}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			if h.method != "tools/call" {
				return false
			}
			text := `{"resultType":"complete","content":[{"type":"text","text":"` + h.name() + `"}]}`
			if len(h.name())%2 == 0 {
				result(w, h, text)
			} else {
				events(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/mine\"}\n\n"+sseResult(h, text))
			}
			return true
		}
		server := httptest.NewServer(f)
		cs := f.connect(t, nil, &HTTP{URL: server.URL})
		var calls sync.WaitGroup
		for n := range 32 {
			calls.Go(func() {
				for i := range 20 {
					name := fmt.Sprintf("%d-%d", n, i)
					if text, err := callText(cs, name); text != name || err != nil {
						t.Errorf("%s: %q, %v", name, text, err)
					}
				}
			})
		}
		calls.Wait()
		cs.Close()
		server.Close()
	}
}

// net/http may give a request that was answered without a body the error of
// the next one on the same connection. A notification is then sent once more.
func TestHTTPClientNotificationWithAnothersError(t *testing.T) {
	for name, theirs := range map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled} {
		f := &fakeHTTP{t: t, versions: []string{Version20251125}}
		server := httptest.NewServer(f)
		failed := false
		unlucky := failing(func(r *http.Request) (*http.Response, error) {
			response, err := http.DefaultTransport.RoundTrip(r)
			if err == nil && response.StatusCode == http.StatusAccepted && !failed {
				failed = true
				response.Body.Close()
				return nil, theirs
			}
			return response, err
		})
		cs := f.connect(t, nil, &HTTP{URL: server.URL, Client: &http.Client{Transport: unlucky}, NoStream: true})
		cs.Close()
		if n := len(f.of("POST notifications/initialized")); n != 2 {
			t.Errorf("%s: initialized was sent %d times", name, n)
		}
		server.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// Over HTTP+SSE a refused message fails its call only, and the session ends
// with its stream; with Restart there is another one.
func TestHTTPClientOldTransportEnds(t *testing.T) {
	shows(t, "sse.client.post", "http.compat.sse-client-endpoint")
	synctest.Test(t, func(t *testing.T) {
		out, cut := make(chan string, 16), make(chan bool)
		f := &fakeHTTP{t: t}
		f.do = func(w http.ResponseWriter, r *http.Request, h *hit) bool {
			switch {
			case h.verb == "GET":
				events(w, "event: endpoint\ndata: ?sessionId=the-session-secret\n\n")
				for {
					select {
					case text := <-out:
						events(w, text)
					case <-cut:
						return true
					case <-r.Context().Done():
						return true
					}
				}
			case r.URL.RawQuery == "":
				w.WriteHeader(405)
			case h.name() == "refused":
				reply(w, 500, "text/plain", "broken in the-session-secret")
			case h.name() == "gone":
				panic(http.ErrAbortHandler)
			default:
				w.WriteHeader(202)
				if h.method == "initialize" {
					out <- sseResult(h, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`)
				} else if !h.id.IsZero() && h.name() != "hang" {
					out <- sseResult(h, okResult)
				}
			}
			return true
		}
		for _, restart := range []bool{false, true} {
			cs := f.connect(t, &ClientOptions{Restart: restart}, f.transport())
			for name, text := range map[string]string{"refused": "500 Internal Server Error", "gone": "unexpected EOF"} {
				if _, err := callText(cs, name); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %v", name, err)
				}
			}
			failed := make(chan error)
			go func() {
				_, err := callText(cs, "hang")
				failed <- err
			}()
			synctest.Wait()
			cut <- true
			if err := <-failed; !errors.Is(err, ErrClosed) {
				t.Errorf("the call in flight: %v", err)
			}
			if text, err := callText(cs, "t"); (err == nil) != restart || restart && text != "ok" {
				t.Errorf("after it: %q, %v", text, err)
			}
			cs.Close()
		}
	})
}
