//go:build unix

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// An exchange is one HTTP request and its answer, as a tap saw them.
type exchange struct {
	method, path string
	sent, got    http.Header
	posted       []wireMessage
	status       int
	body         []byte     // of an answer that is no stream
	events       []tapEvent // of one that is
	told         []wireMessage
	ended        bool // the answer came to its end
	left         bool // the client went away before that
	cut          bool // the tap broke the connection
}

func (x *exchange) stream() bool { return typeOf(x.got) == "text/event-stream" }

func typeOf(h http.Header) string {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind
}

// request is the request that a POST holds, nil if it holds none.
func (x *exchange) request() *wireMessage {
	for i, m := range x.posted {
		if m.Method != "" && m.ID != nil {
			return &x.posted[i]
		}
	}
	return nil
}

// A tapEvent is an event, or a comment.
type tapEvent struct{ name, id, retry, data, comment string }

// An httpTap is a proxy between a client and a server, and keeps what went
// through it.
type httpTap struct {
	*httptest.Server
	cut func(*exchange, *tapEvent) bool // whether the connection breaks after this event

	mu        sync.Mutex
	exchanges []*exchange
	order     [2][]wireMessage // from the client, from the server
}

// newHTTPTap returns a tap in front of the server at a URL, and the URL to use
// instead; see httpTap.cut, which may be nil.
func (p *peers) newHTTPTap(t *testing.T, server string, cut func(*exchange, *tapEvent) bool) (*tap, string) {
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	h := &httpTap{cut: cut}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
			// The target thinks in its own origin.
			if r.In.Header.Get("Origin") == h.URL {
				r.Out.Header.Set("Origin", "http://"+u.Host)
			}
		},
		Transport:      &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 10},
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: h.modify,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			x := r.Context().Value(exchangeKey{}).(*exchange)
			h.mu.Lock()
			x.left = r.Context().Err() != nil
			h.mu.Unlock()
			panic(http.ErrAbortHandler)
		},
	}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		x := &exchange{method: r.Method, path: r.URL.Path, sent: r.Header.Clone(), posted: messagesIn(body)}
		h.mu.Lock()
		h.exchanges = append(h.exchanges, x)
		h.order[0] = append(h.order[0], x.posted...)
		h.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	}))
	h.Start()
	t.Cleanup(h.Close)
	return &tap{t: t, http: h, published: p.published}, h.URL + u.Path
}

type exchangeKey struct{}

// messagesIn are the messages of a body, one or a batch; what is no message has
// an empty JSONRPC.
func messagesIn(body []byte) []wireMessage {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	raws := []json.RawMessage{body}
	if body[0] == '[' {
		_ = json.Unmarshal(body, &raws)
	}
	var all []wireMessage
	for _, raw := range raws {
		m := wireMessage{raw: bytes.Clone(raw)}
		_ = json.Unmarshal(raw, &m)
		all = append(all, m)
	}
	return all
}

func (h *httpTap) modify(r *http.Response) error {
	x := r.Request.Context().Value(exchangeKey{}).(*exchange)
	h.mu.Lock()
	defer h.mu.Unlock()
	x.status, x.got = r.StatusCode, r.Header.Clone()
	r.Body = &tapBody{ReadCloser: r.Body, h: h, x: x, ctx: r.Request.Context()}
	return nil
}

// A tapBody is an answer on its way.
type tapBody struct {
	io.ReadCloser
	h     *httpTap
	x     *exchange
	ctx   context.Context
	line  []byte
	event tapEvent
	any   bool // the event has a line
}

func (b *tapBody) Read(p []byte) (int, error) {
	if b.x.cut {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p)
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	if !b.x.stream() {
		b.x.body = append(b.x.body, p[:n]...)
	} else {
		n = b.feed(p[:n])
	}
	switch {
	case err == io.EOF:
		b.x.ended = true
		if typeOf(b.x.got) == "application/json" {
			for _, m := range messagesIn(b.x.body) {
				if m.ID != nil || m.Error == nil { // else it is about HTTP
					b.tell([]wireMessage{m})
				}
			}
		}
	case err != nil:
		b.x.left = b.ctx.Err() != nil
	}
	return n, err
}

// feed reads lines and returns how much the client gets of them.
func (b *tapBody) feed(p []byte) int {
	for i, c := range p {
		if b.line = append(b.line, c); c != '\n' {
			continue
		}
		line := strings.TrimRight(string(b.line), "\r\n")
		b.line = b.line[:0]
		if line != "" {
			b.any = true
			b.event.field(line)
			continue
		}
		e := b.event
		whole := b.any
		b.event, b.any = tapEvent{}, false
		if !whole {
			continue
		}
		b.x.events = append(b.x.events, e)
		if e.data != "" && (e.name == "" || e.name == "message") {
			b.tell(messagesIn([]byte(e.data)))
		}
		if b.h.cut != nil && b.h.cut(b.x, &e) {
			b.x.cut = true
			return i + 1
		}
	}
	return len(p)
}

func (e *tapEvent) field(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "event":
		e.name = value
	case "id":
		e.id = value
	case "retry":
		e.retry = value
	case "data":
		if e.data != "" {
			e.data += "\n"
		}
		e.data += value
	case "":
		e.comment += value
	}
}

func (b *tapBody) tell(messages []wireMessage) {
	b.x.told = append(b.x.told, messages...)
	b.h.order[1] = append(b.h.order[1], messages...)
}

// seen are the exchanges so far.
func (h *httpTap) seen(method string) (found []*exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.exchanges {
		if method == "" || x.method == method {
			found = append(found, x)
		}
	}
	return found
}

// session is the id of the newest session.
func (h *httpTap) session() (id string) {
	for _, x := range h.seen("POST") {
		if given := x.got.Get("Mcp-Session-Id"); given != "" {
			id = given
		}
	}
	return id
}

func (x *exchange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %v\n", x.method, x.path, x.sent)
	for _, m := range x.posted {
		fmt.Fprintf(&b, "  → %s\n", m.raw)
	}
	fmt.Fprintf(&b, "  %d %v ended=%v left=%v cut=%v\n", x.status, x.got, x.ended, x.left, x.cut)
	for _, e := range x.events {
		fmt.Fprintf(&b, "  ← %+v\n", e)
	}
	if x.body != nil {
		fmt.Fprintf(&b, "  ← %s\n", x.body)
	}
	return b.String()
}

// leftAlone are the ids of requests whose client went away before the answer,
// which is how one of 2026-07-28 cancels.
func (h *httpTap) leftAlone() map[string]bool {
	ids := map[string]bool{}
	gone := false // the stream of HTTP+SSE
	for _, x := range h.seen("GET") {
		gone = gone || x.left && strings.HasSuffix(x.path, "/sse")
	}
	for _, x := range h.seen("POST") {
		m := x.request()
		if m == nil || !x.left && !gone {
			continue
		}
		answered := slices.ContainsFunc(x.told, func(a wireMessage) bool { return a.Method == "" && string(a.ID) == string(m.ID) })
		if !answered {
			ids[string(m.ID)] = true
		}
	}
	return ids
}

// checkServerHTTP checks what of an answer of our server is HTTP's.
func (p *tap) checkServerHTTP(rev *revision) {
	ids := map[string]bool{}
	for _, x := range p.http.seen("") {
		m := x.request()
		fail := func(why string) { p.t.Errorf("%s: %s", why, x) }
		switch {
		case x.status == 0 || x.left && x.got == nil:
		case x.method == "POST" && m == nil:
			if x.status != http.StatusAccepted && !(x.status == http.StatusNotFound && !rev.modern) || x.status == http.StatusAccepted && len(x.body) > 0 {
				fail("a notification or response")
			}
		case x.method == "POST" && x.path != "/mcp": // HTTP+SSE
			if x.status != http.StatusAccepted {
				fail("a message of HTTP+SSE")
			}
		case x.method == "POST":
			p.checkPostAnswer(rev, x, m)
		case x.method == "GET" && !x.stream() && x.status != http.StatusMethodNotAllowed && !(x.status == http.StatusNotFound && x.sent.Get("Mcp-Session-Id") != ""):
			fail("a GET")
		}
		if sid := x.got.Get("Mcp-Session-Id"); sid != "" && (rev.modern || m == nil || m.Method != methodInitialize ||
			strings.ContainsFunc(sid, func(r rune) bool { return r < 0x21 || r > 0x7e })) {
			fail("a session id")
		}
		if x.stream() {
			p.checkStream(rev, x, ids)
		}
	}
}

// checkPostAnswer: the answer comes last on the stream, or as the body, and
// the status fits.
func (p *tap) checkPostAnswer(rev *revision, x *exchange, m *wireMessage) {
	kind := typeOf(x.got)
	if kind != "application/json" && kind != "text/event-stream" {
		p.t.Errorf("an answer of type %q: %s", kind, x)
	}
	for i, told := range x.told {
		if told.Method == "" && (string(told.ID) != string(m.ID) || i != len(x.told)-1) {
			p.t.Errorf("the answer does not end the stream: %s", x)
		}
		if told.Method == "" && told.Error != nil && !x.stream() {
			want := map[int]int{CodeMethodNotFound: 404, CodeParseError: 400, CodeInvalidRequest: 400, CodeInvalidParams: 400,
				CodeHeaderMismatch: 400, CodeMissingClientCapability: 400, CodeUnsupportedProtocolVersion: 400}[told.Error.Code]
			if want == 0 || !rev.modern {
				want = x.status // the next line has nothing to say
			}
			if x.status != want {
				p.t.Errorf("%d with code %d: %s", x.status, told.Error.Code, x)
			}
		}
	}
	if rev.modern && x.stream() && x.got.Get("X-Accel-Buffering") != "no" {
		p.t.Errorf("no X-Accel-Buffering: %s", x)
	}
}

// checkStream checks ids and the first event of a stream; what is only for
// 2025-11-25 is not sent before, and nothing of it at 2026-07-28.
func (p *tap) checkStream(rev *revision, x *exchange, ids map[string]bool) {
	resumes := x.sent.Get("Last-Event-Id") != ""
	for i, e := range x.events {
		switch {
		case rev.modern && (e.id != "" || e.retry != ""):
			p.t.Errorf("an id or retry at %s: %s", rev.version, x)
		case strings.HasSuffix(x.path, "/sse"):
			if want := map[bool]string{true: "endpoint", false: "message"}[i == 0]; e.name != want && e.comment == "" {
				p.t.Errorf("event %d is not %s: %s", i, want, x)
			}
			continue
		case rev == rev20251125 && i == 0 && !resumes && (e.id == "" || e.data != ""):
			p.t.Errorf("the first event: %s", x)
		case rev != rev20251125 && e.data == "" && e.comment == "":
			p.t.Errorf("an event without data at %s: %s", rev.version, x)
		}
		if e.id != "" && e.data != "" {
			if ids[e.id] && !resumes {
				p.t.Errorf("the id of event %d was used before: %s", i, x)
			}
			ids[e.id] = true
		}
	}
	for _, told := range x.told {
		if x.method == "GET" && told.Method == "" && !resumes && !strings.HasSuffix(x.path, "/sse") {
			p.t.Errorf("an answer on the stream of a GET: %s", x)
		}
	}
}

// checkClientHTTP checks what of a request of our client is HTTP's.
func (p *tap) checkClientHTTP(rev *revision) {
	session, deleted, agreed := "", 0, false
	sse := false
	for _, x := range p.http.seen("") {
		fail := func(why string) { p.t.Errorf("%s: %s", why, x) }
		m := x.request()
		accept := x.sent.Get("Accept")
		sse = sse || x.method == "GET" && len(x.events) > 0 && x.events[0].name == "endpoint"
		if !sse && (!strings.Contains(accept, "text/event-stream") && x.method != "DELETE" || !strings.Contains(accept, "application/json") && x.method == "POST") {
			fail("Accept")
		}
		if x.method == "POST" && (len(x.posted) != 1 || typeOf(x.sent) != "application/json") {
			fail("the body")
		}
		if m != nil && (m.modern() || m.Method == methodInitialize) {
			if p.checkModernHeaders(x, m); x.sent.Get("Mcp-Session-Id") != "" {
				fail("a session id")
			}
			if m.Method == methodInitialize {
				session, agreed = x.got.Get("Mcp-Session-Id"), false
			}
			continue
		}
		agreed = agreed || !rev.modern && x.method == "POST"
		if x.sent.Get("Mcp-Session-Id") != session {
			fail("the session id")
		}
		if want := x.sent.Get("Mcp-Protocol-Version"); agreed && !sse && rev.atLeast(rev20250618) && want != rev.version {
			fail("the version")
		}
		if x.method == "DELETE" {
			deleted++
		}
	}
	if want := map[bool]int{true: 1}[session != ""]; deleted != want {
		p.t.Errorf("%d times DELETE, want %d", deleted, want)
	}
}

// checkModernHeaders checks the headers that repeat what the body says.
func (p *tap) checkModernHeaders(x *exchange, m *wireMessage) {
	var params struct{ Name, URI string }
	var members map[string]json.RawMessage
	_ = json.Unmarshal(m.raw, &members)
	_ = json.Unmarshal(members["params"], &params)
	method, name, version := m.Method, "", m.Params.Meta.Version
	switch {
	case !m.modern():
		method = ""
	case method == methodToolsCall || method == methodPromptsGet:
		name = params.Name
	case method == methodResourcesRead:
		name = params.URI
	}
	if x.sent.Get("Mcp-Method") != method || x.sent.Get("Mcp-Name") != name || m.modern() && x.sent.Get("Mcp-Protocol-Version") != version {
		p.t.Errorf("the headers of %s: %s", m.Method, x)
	}
	if x.sent.Get("Last-Event-Id") != "" {
		p.t.Errorf("a resumption: %s", x)
	}
}

// TestPeersHTTPTap shows that the rules of HTTP find what they are there for.
func TestPeersHTTPTap(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + meta + `}}`
	answer := `{"jsonrpc":"2.0","id":1,"result":{}}`
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	stream, object := []string{"Content-Type", "text/event-stream"}, []string{"Content-Type", "application/json"}
	both := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	events := func(all ...tapEvent) *exchange {
		x := &exchange{method: "POST", path: "/mcp", posted: messagesIn([]byte(call)), status: 200, got: header(stream...), events: all}
		for _, e := range all {
			x.told = append(x.told, messagesIn([]byte(e.data))...)
		}
		return x
	}
	prime, end := tapEvent{id: "1"}, tapEvent{id: "2", data: answer}
	for _, c := range []struct {
		name   string
		rev    *revision
		client bool
		x      *exchange
		want   string // part of what the tap says; "": nothing
	}{
		{"stream", rev20251125, false, events(prime, end), ""},
		{"no first event", rev20251125, false, events(end), "the first event"},
		{"an early first event", rev20250618, false, events(prime, end), "an event without data"},
		{"id twice", rev20251125, false, events(prime, tapEvent{id: "2", data: `{"jsonrpc":"2.0","method":"x"}`}, end), "was used before"},
		{"more after the answer", rev20251125, false, events(prime, end, tapEvent{id: "3", data: `{"jsonrpc":"2.0","method":"x"}`}), "does not end the stream"},
		{"another's answer", rev20251125, false, events(prime, tapEvent{id: "2", data: `{"jsonrpc":"2.0","id":2,"result":{}}`}), "does not end the stream"},
		{"id at 2026-07-28", rev20260728, false, events(end), "an id or retry"},
		{"buffered", rev20260728, false, events(tapEvent{data: answer}), "no X-Accel-Buffering"},
		{"type", rev20251125, false, &exchange{method: "POST", path: "/mcp", posted: messagesIn([]byte(call)), status: 200, got: header("Content-Type", "text/plain")}, "an answer of type"},
		{"session", rev20251125, false, &exchange{method: "POST", path: "/mcp", posted: messagesIn([]byte(call)), status: 200, got: header("Content-Type", "application/json", "Mcp-Session-Id", "1")}, "a session id"},
		{"status", rev20260728, false, &exchange{method: "POST", path: "/mcp", posted: messagesIn([]byte(modern)), status: 200, got: header(object...),
			told: messagesIn([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}`))}, "200 with code"},
		{"notification", rev20251125, false, &exchange{method: "POST", path: "/mcp", posted: messagesIn([]byte(`{"jsonrpc":"2.0","method":"x"}`)), status: 200}, "a notification"},
		{"answer to GET", rev20250618, false, &exchange{method: "GET", path: "/mcp", status: 200, got: header(stream...), told: messagesIn([]byte(answer))}, "on the stream of a GET"},
		{"first of HTTP+SSE", rev20241105, false, &exchange{method: "GET", path: "/sse", status: 200, got: header(stream...), events: []tapEvent{{name: "message"}}}, "is not endpoint"},

		{"call", rev20260728, true, &exchange{method: "POST", posted: messagesIn([]byte(modern)),
			sent: header(append(both, "Mcp-Method", "tools/call", "Mcp-Name", "a", "Mcp-Protocol-Version", "2026-07-28")...)}, ""},
		{"name", rev20260728, true, &exchange{method: "POST", posted: messagesIn([]byte(modern)),
			sent: header(append(both, "Mcp-Method", "tools/call", "Mcp-Protocol-Version", "2026-07-28")...)}, "the headers of"},
		{"accept", rev20250326, true, &exchange{method: "POST", posted: messagesIn([]byte(call)), sent: header(object...)}, "Accept"},
		{"batch", rev20250326, true, &exchange{method: "POST", posted: messagesIn([]byte("[" + call + "," + call + "]")), sent: header(both...)}, "the body"},
		{"version", rev20251125, true, &exchange{method: "POST", posted: messagesIn([]byte(call)), sent: header(both...)}, "the version"},
		{"no session", rev20250326, true, &exchange{method: "DELETE", sent: header("Mcp-Session-Id", "1")}, "the session id"},
		{"not deleted", rev20250326, true, &exchange{method: "POST", posted: messagesIn([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)), sent: header(both...),
			got: header("Mcp-Session-Id", "1")}, "0 times DELETE"},
	} {
		found := new(tapErrors)
		p := &tap{t: found, http: &httpTap{exchanges: []*exchange{c.x}}}
		if c.client {
			p.checkClientHTTP(c.rev)
		} else {
			p.checkServerHTTP(c.rev)
		}
		if all := strings.Join(*found, "\n"); (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: the tap says %q, want %q", c.name, all, c.want)
		}
	}
}
