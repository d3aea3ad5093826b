//go:build !mcp_nohttp

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	mrand "math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file is Streamable HTTP, of every revision: first the server, then
// what both halves share, then the client.

// HTTPOptions say how an [HTTPHandler] works. The zero value is good for
// most, and safe.
type HTTPOptions struct {
	// Server returns the server for a request; nil refuses it with 404. All
	// requests of a session need the same one. A nil function means the
	// handler's own server for all.
	Server func(*http.Request) *Server
	// Principal names who sends a request, as authorization in front of the
	// handler has established it: sessions and the state of requests belong
	// to it. nil means whom the token speaks for behind RequireBearer, and
	// otherwise that all are one.
	Principal func(*http.Request) string

	// Stateless serves revisions before 2026-07-28 without sessions: no
	// session id, no GET, no questions to the client.
	Stateless bool
	// JSON answers every request with one JSON object, never with a stream:
	// what a handler sends before its result is lost, and it cannot ask the
	// client of an older revision. subscriptions/listen is a stream still.
	JSON bool
	// Silence is how long a request may go unanswered before its answer
	// becomes a stream that is kept alive, and how often it is then; 0 means
	// 15 seconds.
	Silence time.Duration

	// IdleTimeout is how long a session may be unused before it ends; 0 means
	// 30 minutes, negative for ever. One with a running request or an open
	// stream is in use.
	IdleTimeout time.Duration
	// MaxSessions is how many sessions there may be; 0 means 10000. Beyond,
	// initialize is refused with 503.
	MaxSessions int
	// MaxBody is the size of the largest request in bytes; 0 means 4 MiB.
	MaxBody int64
	// Events keeps what was sent on streams, so that a client of a revision
	// before 2026-07-28 can go on after its connection broke. nil means 16
	// MiB in memory, in all.
	Events EventStore

	// Origins are the origins whose pages may use the handler, such as
	// "https://app.example.com", or "*" for all: their requests are served
	// and get CORS headers. Without them only pages of the handler's own
	// origin are served, and on a loopback address those of other loopback
	// origins.
	Origins []string
	// Hosts are the names, with or without a port, by which the handler may
	// be called on a loopback address, besides loopback names: those of a
	// reverse proxy in front of it. Other names there are a page's attempt
	// to reach the handler by rebinding its own name.
	Hosts []string
	// Logger gets what the handler notices. nil logs nothing.
	Logger *slog.Logger
}

// An HTTPHandler serves every revision at one URL, the MCP endpoint. Make one
// with [NewHTTPHandler] and end it with Shutdown.
//
// Requests of 2026-07-28 each stand alone; earlier ones belong to a session
// that initialize opens.
type HTTPHandler struct {
	server  *Server
	opts    HTTPOptions
	log     *slog.Logger
	noFlush sync.Once // the log was told that events may be late

	mu       sync.Mutex
	sessions map[string]*httpSession
	opening  int                    // sessions that initialize is about to open
	live     map[*ServerSession]int // how much of each is being served
	sweeper  *time.Timer            // nil without sessions
	closing  bool
	idle     chan struct{}          // closed when nothing is live, if someone waits
	scopes   map[*Server]*httpScope // of servers with a Lifespan
}

// An httpScope is what the Lifespan of a server opened for the handler.
type httpScope struct {
	ctx  context.Context
	life *lifespan
	err  error
	once sync.Once
}

// newSession makes a session of a server, whose handlers have the values of
// its Lifespan. That is opened by the first session and ends with Shutdown.
func (h *HTTPHandler) newSession(ctx context.Context, s *Server) (*ServerSession, *Error) {
	if s.opts.Lifespan == nil {
		return s.newSession(ctx), nil
	}
	h.mu.Lock()
	scope, closing := h.scopes[s], h.closing
	if scope == nil && !closing {
		scope = new(httpScope)
		if h.scopes == nil {
			h.scopes = make(map[*Server]*httpScope)
		}
		h.scopes[s] = scope
	}
	h.mu.Unlock()
	if closing {
		return nil, errShuttingDown
	}
	scope.once.Do(func() { scope.ctx, scope.life, scope.err = s.begin(context.Background()) })
	if scope.err != nil {
		h.log.Error("mcp: Lifespan failed", "error", scope.err)
		return nil, errNoLifespan
	}
	ss := s.newSession(withValues{ctx, scope.ctx})
	ss.life = scope.life
	return ss, nil
}

// NewHTTPHandler returns a handler that serves s, which may be nil if opts
// choose the server. opts may be nil.
func NewHTTPHandler(s *Server, opts *HTTPOptions) *HTTPHandler {
	h := &HTTPHandler{server: s, sessions: make(map[string]*httpSession), live: make(map[*ServerSession]int)}
	if opts != nil {
		h.opts = *opts
	}
	o := &h.opts
	if s == nil && o.Server == nil {
		panic("mcp: NewHTTPHandler needs a server")
	}
	if h.log = o.Logger; h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if o.Silence <= 0 {
		o.Silence = 15 * time.Second
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 30 * time.Minute
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 10000
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.Events == nil {
		o.Events = NewMemoryEvents(16 << 20)
	}
	return h
}

// Headers of the protocol, in the form of net/http.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerParamName = "Mcp-Param-"
	headerLastEvent = "Last-Event-Id"
)

const (
	writeTime = 10 * time.Second // for one write, before the reader is given up
	bodyTime  = time.Minute      // for the body of a request
)

// ServeHTTP serves the MCP endpoint.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.guard(w, r) {
		return
	}
	s := h.serverFor(w, r)
	switch {
	case s == nil:
	case r.Method == http.MethodPost:
		h.post(w, r, s)
	case h.opts.Stateless || s.legacy() == nil || modernHeader(r):
		methodNotAllowed(w, "POST")
	case r.Method == http.MethodGet:
		h.get(w, r, s)
	case r.Method == http.MethodDelete:
		h.delete(w, r, s)
	default:
		methodNotAllowed(w, "GET, POST, DELETE")
	}
}

// serverFor returns the server for a request, or refuses it.
func (h *HTTPHandler) serverFor(w http.ResponseWriter, r *http.Request) *Server {
	s := h.server
	if h.opts.Server != nil {
		s = h.opts.Server(r)
	}
	if s == nil {
		refuseHTTP(w, http.StatusNotFound, ID{}, Errorf(CodeInvalidRequest, "no server here"))
	}
	return s
}

// modernHeader reports whether a request says that it is of a revision
// without sessions.
func modernHeader(r *http.Request) bool {
	rev := revisionOf(r.Header.Get(headerVersion))
	return rev != nil && rev.modern
}

func methodNotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refuseHTTP(w, http.StatusMethodNotAllowed, ID{}, Errorf(CodeInvalidRequest, "method not allowed"))
}

// refuseHTTP answers with a JSON-RPC error.
func refuseHTTP(w http.ResponseWriter, status int, id ID, e *Error) {
	writeJSON(w, status, appendError(nil, id, e))
}

// writeJSON writes the one JSON object that answers a request.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	writeSlowly(w, http.NewResponseController(w), body)
}

// writeAccepted says that a message was taken which is not answered.
func writeAccepted(w http.ResponseWriter) {
	w.Header()["Content-Length"] = []string{"0"}
	w.WriteHeader(http.StatusAccepted)
}

// writeSlowly writes as fast as the reader reads, and gives a reader up that
// has stopped: deadlines are for a part, not for the whole. The last one
// stays, for what is still to be flushed.
func writeSlowly(w io.Writer, control *http.ResponseController, b []byte) error {
	for len(b) > 0 {
		part := b[:min(len(b), 128<<10)]
		control.SetWriteDeadline(time.Now().Add(writeTime)) // where that is not to be had, nothing is bounded
		if _, err := w.Write(part); err != nil {
			return err
		}
		b = b[len(part):]
	}
	return nil
}

var jsonType = []string{"application/json"}

// post takes one message, or a batch at 2025-03-26.
func (h *HTTPHandler) post(w http.ResponseWriter, r *http.Request, s *Server) {
	accept := parseAccept(r.Header["Accept"])
	if !accept.json && !accept.stream {
		refuseHTTP(w, http.StatusNotAcceptable, ID{}, Errorf(CodeInvalidRequest, "the client must accept application/json and text/event-stream"))
		return
	}
	if body := h.readBody(w, r); body != nil {
		p := &posted{h: h, w: w, r: r, server: s, principal: h.principal(r), body: body, accept: accept}
		p.serve()
	}
}

// smallBody is the size of a body in bytes that is read in one piece.
const smallBody = 64 << 10

// isJSON reports whether a media type is that of JSON in UTF-8.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	typ, params, err := mime.ParseMediaType(contentType)
	return err == nil && typ == "application/json" && utf8Charset(params)
}

func utf8Charset(params map[string]string) bool {
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii")
}

// readBody returns the body of a request, of the right type and within bounds
// of size and time, or refuses it and returns nil.
func (h *HTTPHandler) readBody(w http.ResponseWriter, r *http.Request) []byte {
	if !isJSON(r.Header.Get("Content-Type")) {
		refuseHTTP(w, http.StatusUnsupportedMediaType, ID{}, Errorf(CodeInvalidRequest, "the Content-Type must be application/json"))
		return nil
	}
	max := h.opts.MaxBody
	control := http.NewResponseController(w)
	liftDeadlines(control, r)
	if n := r.ContentLength; n > 0 && n <= min(max, smallBody) {
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		control.SetReadDeadline(time.Time{})
		if err != nil {
			refuseHTTP(w, http.StatusBadRequest, ID{}, Errorf(CodeParseError, "the body ends early"))
			return nil
		}
		return body
	}
	buf := bytes.NewBuffer([]byte{})
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, max, 1<<20)) + bytes.MinRead)
	}
	var err error = &http.MaxBytesError{Limit: max}
	if r.ContentLength <= max {
		_, err = buf.ReadFrom(http.MaxBytesReader(w, r.Body, max))
	}
	control.SetReadDeadline(time.Time{})
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		w.Header().Set("Connection", "close")
		refuseHTTP(w, http.StatusRequestEntityTooLarge, ID{}, Errorf(CodeInvalidRequest, "the body is larger than %d bytes", max))
		return nil
	case err != nil:
		refuseHTTP(w, http.StatusBadRequest, ID{}, Errorf(CodeParseError, "the body ends early"))
		return nil
	}
	return buf.Bytes()
}

// liftDeadlines takes away the time that the http.Server gives a request: it
// must not end an answer that takes long, or a stream. The body gets its own.
func liftDeadlines(control *http.ResponseController, r *http.Request) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil {
		return
	}
	if server.WriteTimeout != 0 {
		control.SetWriteDeadline(time.Time{})
	}
	if server.ReadTimeout == 0 {
		control.SetReadDeadline(time.Now().Add(bodyTime))
	}
}

// accepted is what a client can read.
type accepted struct{ json, stream bool }

// parseAccept reads Accept headers by their grammar (RFC 9110 section
// 12.5.1): of the ranges that cover a type the most specific one counts.
// Without a header all is accepted.
func parseAccept(values []string) accepted {
	if len(values) == 0 || len(values) == 1 && values[0] == "application/json, text/event-stream" { // as most say it
		return accepted{true, true}
	}
	var json, stream struct {
		rank int
		ok   bool
	}
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		typ, params, err := mime.ParseMediaType(part)
		if err != nil && typ == "" {
			continue
		}
		q, weighed := params["q"]
		ok := !weighed || strings.Trim(q, "0.") != ""
		for rank, names := range [][2]string{{"*/*", "*/*"}, {"application/*", "text/*"}, {"application/json", "text/event-stream"}} {
			if typ == names[0] && rank >= json.rank {
				json.rank, json.ok = rank, ok
			}
			if typ == names[1] && rank >= stream.rank {
				stream.rank, stream.ok = rank, ok
			}
		}
	}
	return accepted{json.ok, stream.ok}
}

// A posted is the body of a POST on its way to who serves it.
type posted struct {
	h         *HTTPHandler
	w         http.ResponseWriter
	r         *http.Request
	server    *Server
	principal string
	body      []byte
	accept    accepted
	id        ID          // of the request in it; zero otherwise
	params    *paramsView // of that; nil if they are bad
	bad       *Error
}

func (p *posted) refuse(status int, e *Error) { refuseHTTP(p.w, status, p.id, e) }

// serve decides by the body which revision the message is of; the header must
// agree (2026-07-28 basic/transports/streamable-http § Protocol Version
// Header).
func (p *posted) serve() {
	header := p.r.Header.Get(headerVersion)
	rev := p.server.revision(header) // nil: absent, or not served
	if members, ok := splitBatch(p.body); ok {
		switch {
		case rev != nil && rev.modern:
			p.refuse(http.StatusBadRequest, Errorf(CodeInvalidRequest, "the body must be one message"))
		case rev == nil && (header != "" || p.server.legacy() == nil):
			p.refuse(http.StatusBadRequest, p.server.refuseVersion(header))
		default:
			p.serveLegacy(Message{}, false, members)
		}
		return
	}
	m, isResponse, bad := decodeMessage(p.body)
	if !isResponse {
		p.id = m.ID
	}
	if bad != nil {
		p.refuse(http.StatusBadRequest, bad)
		return
	}
	version, claims, bad := p.claimed(m)
	switch {
	case bad != nil:
		p.refuse(http.StatusBadRequest, bad)
	case len(p.r.Header[headerVersion]) > 1:
		p.refuse(http.StatusBadRequest, Errorf(CodeHeaderMismatch, "%s is given twice", headerVersion))
	case claims && !p.server.modern():
		p.refuse(http.StatusBadRequest, p.server.refuseVersion(version))
	case claims && (header == "" || header != version), rev != nil && rev.modern && version != "" && header != version:
		p.refuse(http.StatusBadRequest, Errorf(CodeHeaderMismatch, "%s is %q, but the request says %q", headerVersion, header, version))
	case rev == nil && (header != "" || p.server.legacy() == nil):
		p.refuse(http.StatusBadRequest, p.server.refuseVersion(header))
	case rev != nil && rev.modern:
		p.serveModern(m, isResponse, rev, claims)
	default:
		p.serveLegacy(m, isResponse, nil)
	}
}

// claimed returns the version that the _meta of a request names, and whether
// that is one without sessions, as far as anyone knows.
func (p *posted) claimed(m Message) (version string, claims bool, bad *Error) {
	if !m.IsRequest() {
		return "", false, nil
	}
	if p.params, p.bad = scanParams(m.Params); p.bad != nil || p.params.version == nil {
		return "", false, nil
	}
	version, ok := knownString(p.params.version, commonStrings)
	if !ok {
		return "", false, Errorf(CodeInvalidParams, "params._meta[%q] must be a string", metaProtocolVersion)
	}
	rev := revisionOf(version)
	return version, rev == nil || rev.modern, nil
}

// refuseVersion says that a version is not served, "" that it is missing. A
// server of older revisions only says it as those do, so that the client
// turns to initialize.
func (s *Server) refuseVersion(version string) *Error {
	switch {
	case version == "":
		return Errorf(CodeHeaderMismatch, "the header %s is missing", headerVersion)
	case !s.modern():
		return Errorf(CodeInvalidRequest, "Unsupported protocol version")
	}
	return s.unsupported(version)
}

// enter makes a session of the server, whose leave the caller owes the
// handler, or refuses the message and returns nil.
func (p *posted) enter(ctx context.Context) *ServerSession {
	ss, bad := p.h.newSession(ctx, p.server)
	if bad == nil && !p.h.enter(ss) {
		bad = errShuttingDown
	}
	switch bad {
	case nil:
		return ss
	case errShuttingDown:
		p.refuse(http.StatusServiceUnavailable, bad)
	default:
		p.refuse(http.StatusInternalServerError, bad)
	}
	return nil
}

// serveModern serves a message that stands alone.
func (p *posted) serveModern(m Message, isResponse bool, rev *revision, claims bool) {
	switch {
	case isResponse:
		p.refuse(http.StatusBadRequest, Errorf(CodeInvalidRequest, "a client of %s sends no responses", rev.version))
		return
	case !m.IsRequest():
		p.notifyModern(m, rev)
		return
	case p.bad != nil:
		p.refuse(http.StatusBadRequest, p.bad)
		return
	case m.Method == methodInitialize: // a client of before, which has no _meta
		p.refuse(http.StatusNotFound, methodNotFound(m.Method))
		return
	case !claims && p.params.capabilities == nil:
		p.refuse(http.StatusBadRequest, missingMeta(metaProtocolVersion, metaClientCapabilities))
		return
	case !claims:
		p.refuse(http.StatusBadRequest, missingMeta(metaProtocolVersion))
		return
	}
	if bad := p.checkHeaders(m.Method); bad != nil {
		p.refuse(http.StatusBadRequest, bad)
		return
	}
	ss := p.enter(p.r.Context())
	if ss == nil {
		return
	}
	ps := p.stream(m, ss)
	ps.modern = true
	conn := ps.conn
	defer func() {
		ps.detach(conn)
		ss.core.close(nil)
		p.h.leave(ss)
	}()
	req := p.request(m, ss.core, ps)
	req.values = nil // the session's are the same
	req.mirrored = p.mirrored
	if req := ss.core.accept(req); req != nil {
		ps.keepAlive()
		ss.core.serve(req)
	}
}

// notifyModern serves a notification. Header rules for it are not defined
// (2026-07-28 basic/transports/streamable-http § Server Validation).
func (p *posted) notifyModern(m Message, rev *revision) {
	params, bad := scanParams(m.Params)
	if bad != nil {
		p.refuse(http.StatusBadRequest, bad)
		return
	}
	ss := p.enter(p.r.Context())
	if ss == nil {
		return
	}
	defer p.h.leave(ss)
	defer ss.core.close(nil)
	req := p.request(m, ss.core, discard{})
	req.params, req.rev = params, rev
	writeAccepted(p.w)
	http.NewResponseController(p.w).Flush() // the client need not wait for what is done with it
	if _, err := ss.core.run(ss.core.ctx, req); err != nil {
		p.h.log.Warn("mcp: notification failed", "method", m.Method, "error", err)
	}
}

// discard is the way out for a message that is not answered.
type discard struct{}

func (discard) room(context.Context) error { return nil }
func (discard) put([]byte) error           { return nil }
func (discard) answer([]byte, int)         {}

// request makes the request that handlers see.
func (p *posted) request(m Message, core *session, out stream) *Request {
	req := &Request{Method: m.Method, ID: m.ID, Params: m.Params, bad: m.ambiguous, session: core, out: out}
	if p.bad == nil {
		req.params = p.params
	}
	p.dress(req)
	return req
}

// dress gives a request what HTTP knows of it.
func (p *posted) dress(req *Request) {
	req.Header, req.Principal, req.values = p.r.Header, p.principal, p.r.Context()
}

// stream makes the stream of this POST.
func (p *posted) stream(m Message, ss *ServerSession) *postStream {
	all := &struct { // in one piece of memory
		stream   postStream
		response response
	}{
		postStream{h: p.h, id: m.ID, session: ss},
		response{h: p.h, w: p.w, control: http.NewResponseController(p.w), accept: p.accept, waits: p.r.ProtoMajor > 1},
	}
	ps := &all.stream
	ps.conn = &all.response
	ps.only = p.accept.json && (p.h.opts.JSON && m.Method != methodListen || !p.accept.stream)
	return ps
}

var (
	errShuttingDown = Errorf(CodeInternalError, "the server is shutting down")
	errNoLifespan   = Errorf(CodeInternalError, "internal error")
)

// status is that of an answer that is no stream
// (2026-07-28 basic/transports/streamable-http). Clients of before take
// others than 200 for a failure of the connection; a batch is refused as a
// whole.
func (ps *postStream) status(code int) int {
	switch {
	case ps.refused != 0 && code != 0:
		return ps.refused
	case code == 0 || !ps.modern && !ps.id.IsZero():
		return http.StatusOK
	case code == CodeMethodNotFound:
		return http.StatusNotFound
	case code == CodeParseError, code == CodeInvalidRequest, code == CodeInvalidParams,
		code == CodeHeaderMismatch, code == CodeMissingClientCapability, code == CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// checkHeaders refuses a request whose headers do not say what its body says:
// who routes by them must not be deceived
// (2026-07-28 basic/transports/streamable-http § Server Validation).
func (p *posted) checkHeaders(method string) *Error {
	if bad := checkHeader(p.r.Header, headerMethod, method, false); bad != nil {
		return bad
	}
	name, ok := stringValue(namedBy(method, p.params))
	if !ok {
		return nil // no name, or none that who serves the method takes
	}
	return checkHeader(p.r.Header, headerName, name, true)
}

// namedBy returns the member of the params that Mcp-Name repeats, nil for a
// method without one.
func namedBy(method string, params *paramsView) []byte {
	switch method {
	case methodToolsCall, methodPromptsGet:
		return params.name
	case methodResourcesRead:
		return params.uri
	}
	return nil
}

// checkHeader compares a header that must be there with what the body says.
func checkHeader(h http.Header, name, want string, encoded bool) *Error {
	values := h[name]
	if len(values) != 1 {
		return Errorf(CodeHeaderMismatch, "the header %s must be there, once", name)
	}
	got, ok := values[0], true
	if encoded {
		got, ok = decodeHeader(got)
	}
	if !ok || got != want {
		return Errorf(CodeHeaderMismatch, "the header %s does not match the body", name)
	}
	return nil
}

// mirrored compares the Mcp-Param headers of a tool's call with its arguments
// (2026-07-28 basic/transports/streamable-http § Custom Headers).
func (p *posted) mirrored(params []headerParam, arguments []byte) *Error {
	for _, param := range params {
		name := http.CanonicalHeaderKey(headerParamName + param.header)
		values, raw := p.r.Header[name], param.value(arguments)
		switch {
		case len(values) == 0 && raw == nil:
			continue
		case len(values) == 0:
			return Errorf(CodeHeaderMismatch, "the header %s is missing", name)
		case len(values) > 1:
			return Errorf(CodeHeaderMismatch, "the header %s is given twice", name)
		}
		if text, ok := decodeHeader(values[0]); !ok || raw == nil || !param.equal(raw, text) {
			return Errorf(CodeHeaderMismatch, "the header %s does not match the arguments", name)
		}
	}
	return nil
}

// enter counts a session as being served, unless the handler shuts down.
func (h *HTTPHandler) enter(ss *ServerSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closing {
		h.live[ss]++
	}
	return !h.closing
}

// stay is enter for who has entered already.
func (h *HTTPHandler) stay(ss *ServerSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[ss]++
}

func (h *HTTPHandler) leave(ss *ServerSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live[ss]--; h.live[ss] == 0 {
		delete(h.live, ss)
	}
	if len(h.live) == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

// Shutdown ends the handler: new requests are refused with 503, subscriptions
// end with their result, running requests may finish until ctx ends, then all
// sessions close. It returns ctx's error if it had to wait that long.
func (h *HTTPHandler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	for ss := range h.live {
		ss.drain()
	}
	for _, hs := range h.sessions {
		hs.ss.drain() // which may have a listen, over HTTP+SSE
	}
	if h.sweeper != nil {
		h.sweeper.Stop()
	}
	if len(h.live) > 0 && h.idle == nil {
		h.idle = make(chan struct{})
	}
	idle := h.idle
	h.mu.Unlock()
	var err error
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	h.endAll()
	return err
}

// endAll closes all that is left, all at once: each of them may take some
// seconds.
func (h *HTTPHandler) endAll() {
	var each sync.WaitGroup
	do := func(f func()) {
		each.Add(1)
		go func() {
			defer each.Done()
			f()
		}()
	}
	h.mu.Lock()
	for ss := range h.live {
		do(func() { ss.core.close(nil) })
	}
	for id, hs := range h.sessions {
		delete(h.sessions, id)
		do(hs.end)
	}
	h.mu.Unlock()
	each.Wait()
	h.mu.Lock()
	for _, scope := range h.scopes {
		do(func() {
			scope.once.Do(func() {}) // it may just be opening
			scope.life.end()
			scope.life.await(cleanTime)
		})
	}
	h.mu.Unlock()
	each.Wait()
}

// guard refuses what a page of another origin sends, and answers its
// preflight (2026-07-28 basic/transports/streamable-http § Security).
func (h *HTTPHandler) guard(w http.ResponseWriter, r *http.Request) bool {
	local := onLoopback(r)
	if local && !loopbackHost(r.Host) && !h.knownHost(r.Host) {
		refuseHTTP(w, http.StatusForbidden, ID{}, Errorf(CodeInvalidRequest, "this host name is not served on a loopback address"))
		return false
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		if r.Method == http.MethodOptions {
			methodNotAllowed(w, "GET, POST, DELETE")
			return false
		}
		return true
	}
	origin := origins[0]
	listed := slices.Contains(h.opts.Origins, origin) || slices.Contains(h.opts.Origins, "*")
	if len(origins) > 1 || !listed && !sameOrigin(origin, r.Host) && !(local && loopbackOrigin(origin)) {
		refuseHTTP(w, http.StatusForbidden, ID{}, Errorf(CodeInvalidRequest, "pages of this origin are not served"))
		return false
	}
	if listed {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", origin)
		header.Add("Vary", "Origin")
		header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After")
	}
	if r.Method != http.MethodOptions {
		return true
	}
	if !listed || r.Header.Get("Access-Control-Request-Method") == "" {
		methodNotAllowed(w, "GET, POST, DELETE")
		return false
	}
	preflight(w, r)
	return false
}

// preflight allows what clients of the protocol send.
func preflight(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, name := range strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		switch name {
		case "accept", "authorization", "content-type", "last-event-id", "dpop", "traceparent", "tracestate", "baggage":
		default:
			if !strings.HasPrefix(name, "mcp-") || !isToken(name) {
				continue
			}
		}
		allowed = append(allowed, name)
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if allowed != nil {
		header.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	}
	header.Add("Vary", "Access-Control-Request-Headers")
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// onLoopback reports whether a request came in on a loopback address.
func onLoopback(r *http.Request) bool {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if addr == nil {
		return false
	}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	ip, err := netip.ParseAddrPort(addr.String())
	return err == nil && ip.Addr().Unmap().IsLoopback()
}

// loopbackHost reports whether a host, with or without a port, can only be
// this machine.
func loopbackHost(host string) bool {
	host = withoutPort(host)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// withoutPort returns a host without its port and without the brackets of
// IPv6.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func (h *HTTPHandler) knownHost(host string) bool {
	return slices.ContainsFunc(h.opts.Hosts, func(known string) bool {
		return strings.EqualFold(known, host) || strings.EqualFold(known, withoutPort(host))
	})
}

// loopbackOrigin reports whether an origin is a page of this machine.
func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopbackHost(u.Host)
}

// sameOrigin reports whether an origin is that of the host that was called.
// The scheme is not known behind a proxy and does not count.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port))
}

// A response writes one HTTP response: either a JSON object or a stream of
// events. It may be used until whoever serves the request returns. Under the
// lock of who has it.
type response struct {
	h       *HTTPHandler
	w       http.ResponseWriter
	control *http.ResponseController
	accept  accepted
	waits   bool          // a write may wait for the reader however little it writes
	started bool          // the stream has begun
	failed  error         // why nothing more can be written
	done    chan struct{} // if not nil, closed when there is nothing more to write
	buf     []byte
}

// start begins the stream.
func (c *response) start() {
	if c.started {
		return
	}
	c.started = true
	header := c.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	c.w.WriteHeader(http.StatusOK)
}

// json writes the one JSON object that the response is. Over HTTP/1 a small one
// finds room whatever the reader does.
func (c *response) json(status int, body []byte) {
	if c.waits || len(body) > smallAnswer {
		writeJSON(c.w, status, body)
		return
	}
	header := c.w.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.w.WriteHeader(status)
	c.w.Write(body)
}

// smallAnswer is the size in bytes of an answer that no socket is too full for,
// where one answer is under way at a time.
const smallAnswer = 4 << 10

// event writes one event; a name or an id that is "" is left out.
func (c *response) event(name, id string, data []byte) error {
	c.start()
	c.buf = c.buf[:0]
	if name != "" {
		c.buf = append(append(append(c.buf, "event: "...), name...), '\n')
	}
	if id != "" {
		c.buf = append(append(append(c.buf, "id: "...), id...), '\n')
	}
	c.buf = append(append(append(c.buf, "data: "...), data...), "\n\n"...)
	return c.write(c.buf)
}

// comment writes what readers ignore: it keeps the connection open.
func (c *response) comment() error {
	c.start()
	return c.write([]byte(": still here\n\n"))
}

// write writes and flushes, and gives a reader up that is too slow for it.
func (c *response) write(b []byte) error {
	if c.failed != nil {
		return c.failed
	}
	err := writeSlowly(c.w, c.control, b)
	if err == nil {
		err = c.control.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
		c.h.noFlush.Do(func() { c.h.log.Warn("mcp: events may be late: the http.ResponseWriter cannot flush") })
	}
	if err != nil {
		c.failed = fmt.Errorf("mcp: the client does not read: %w", err)
	} else {
		c.control.SetWriteDeadline(time.Time{})
	}
	if len(c.buf) > 64<<10 {
		c.buf = nil
	}
	return c.failed
}

// release says that there is nothing more to write.
func (c *response) release() {
	if c.done != nil {
		close(c.done)
	}
}

// A postStream is the way out of what one POST asked for.
type postStream struct {
	h       *HTTPHandler
	id      ID // of the request; zero for a batch
	session *ServerSession
	owner   *httpSession // nil at 2026-07-28, and without sessions
	number  string       // of the stream within the session, for event ids; "" without
	only    bool         // one JSON object, whatever happens
	modern  bool
	opened  func(code int) *Error // before the answer to initialize leaves

	mu       sync.Mutex
	conn     *response // nil while nobody reads
	timer    *time.Timer
	answered bool
	refused  int // the status of an error answer, if not the usual one
}

// refuseWith gives the error that is about to be answered a status of HTTP and
// a challenge, unless a stream has begun.
func (ps *postStream) refuseWith(status int, challenge string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.conn != nil && !ps.conn.started {
		ps.refused = status
		ps.conn.w.Header().Set("WWW-Authenticate", challenge)
	}
}

// keepAlive turns a long silence into a stream, and keeps it alive.
func (ps *postStream) keepAlive() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.arm()
}

// arm is keepAlive, under ps.mu.
func (ps *postStream) arm() {
	conn := ps.conn
	if conn == nil || ps.only {
		return
	}
	ps.timer = time.AfterFunc(ps.h.opts.Silence, func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		if ps.conn == conn { // else it came too late
			ps.begin()
			conn.comment()
			ps.timer.Reset(ps.h.opts.Silence)
		}
	})
}

// begin starts the stream: where the client could go on with it later, with
// an event that says from where (2025-11-25 basic/transports § Sending
// Messages to the Server).
func (ps *postStream) begin() {
	if ps.conn.started {
		return
	}
	ps.conn.start()
	if ps.number != "" && ps.session.primes() {
		ps.conn.event("", ps.store(nil), nil)
	}
}

// primes reports whether streams begin with an event without data.
func (ss *ServerSession) primes() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.rev == rev20251125
}

// store keeps an event for a client that comes back, and returns its id.
func (ps *postStream) store(frame []byte) string {
	if ps.number == "" {
		return ""
	}
	return ps.owner.store(ps.number, frame)
}

// errOneAnswer is why a handler cannot send anything before its result.
var errOneAnswer = errors.New("mcp: the answer over HTTP is one JSON object: nothing can be sent before it")

// room: a reader that is too slow is given up, not waited for.
func (ps *postStream) room(context.Context) error { return nil }

func (ps *postStream) put(frame []byte) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	switch {
	case ps.answered:
		return ErrClosed
	case ps.only:
		if m, _, _ := decodeMessage(frame); m.IsRequest() {
			return errOneAnswer
		}
		return nil // a notice, which is lost
	case ps.conn == nil:
		if ps.number == "" {
			return ErrClosed
		}
		ps.store(frame)
		return nil
	}
	ps.begin()
	return ps.write(frame)
}

// write writes an event. A reader that fails loses the stream; what it misses
// is kept, if anything is. That is the handler's affair at 2026-07-28 only,
// where it is cancelled, too.
func (ps *postStream) write(frame []byte) error {
	err := ps.conn.event("", ps.store(frame), frame)
	if err != nil && ps.number != "" {
		ps.release()
	}
	if !ps.modern {
		return nil
	}
	return err
}

// answer sends the last frame. code is that of an error response, 0 for a
// result; no frame means that a request was cancelled, or that there was none.
func (ps *postStream) answer(frame []byte, code int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.answered {
		return
	}
	if ps.opened != nil {
		if bad := ps.opened(code); bad != nil {
			code, frame = bad.Code, appendError(nil, ps.id, bad)
		}
	}
	if frame == nil && ps.owner != nil && !ps.id.IsZero() {
		// Whoever waits for the POST has to be let go (2025-11-25 basic/utilities/cancellation).
		code, frame = codeCancelled, appendError(nil, ps.id, Errorf(codeCancelled, "request cancelled"))
	}
	ps.answered = true
	switch {
	case frame == nil && ps.conn == nil:
	case ps.conn == nil:
		ps.store(frame)
	case frame == nil && !ps.conn.started && ps.id.IsZero():
		writeAccepted(ps.conn.w)
	case frame == nil:
	case ps.conn.started || !ps.conn.accept.json:
		ps.begin()
		ps.write(frame)
	default:
		ps.conn.json(ps.status(code), frame)
	}
	ps.release()
	if ps.owner != nil {
		ps.owner.forget(ps)
	}
}

// codeCancelled tells a legacy client that its POST ends without a result.
const codeCancelled = -32800

// release lets go of the reader. Under ps.mu.
func (ps *postStream) release() {
	if ps.conn == nil {
		return
	}
	if ps.timer != nil {
		ps.timer.Stop()
	}
	ps.conn.release()
	ps.conn = nil
}

// detach takes a reader away whose request is about to return, unless another
// has taken its place.
func (ps *postStream) detach(conn *response) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.conn == conn {
		ps.release()
	}
}

// attach gives the stream a new reader, after replay has given that what it
// missed, unless that fails or there is nothing more to come.
func (ps *postStream) attach(conn *response, replay func() error) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.release() // of a connection that was not known to be lost
	if replay() != nil || ps.answered {
		return false
	}
	ps.conn = conn
	ps.arm()
	return true
}

// CloseStream ends the stream of events that the request's answer travels on,
// so that the connection is free; the client comes back for the answer after
// retry. It does something only over HTTP at 2025-11-25, where a client can
// come back (its basic/transports § Sending Messages to the Server).
func (r *Request) CloseStream(retry time.Duration) {
	ps, ok := r.out.(*postStream)
	if !ok || ps.number == "" || !ps.session.primes() {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.conn == nil || ps.answered || ps.only {
		return
	}
	ps.begin()
	ps.conn.retry(retry)
	ps.release()
}

// An httpSession is a session of a revision before 2026-07-28.
type httpSession struct {
	h         *HTTPHandler
	id        string
	principal string
	ss        *ServerSession
	old       bool // of HTTP+SSE: the session is one GET
	reserved  bool // counted as opening, under h.mu

	mu      sync.Mutex
	used    time.Time              // last
	open    int                    // HTTP requests being served
	streams int                    // how many there were
	posts   map[string]*postStream // not answered yet, by number
	gets    []*getStream           // newest last
	waiting [][]byte               // for the first GET

	keeping sync.RWMutex
	dropped bool // no more events are kept
}

// Ceilings of a session.
const (
	maxWaiting = 64              // messages waiting for a client to open its stream
	maxGets    = 16              // streams that belong to no request
	getRetry   = 5 * time.Second // before one comes back that was too many
)

// legacy returns the newest served revision with sessions, nil if there is
// none.
func (s *Server) legacy() *revision {
	for _, rev := range slices.Backward(s.revs) {
		if !rev.modern {
			return rev
		}
	}
	return nil
}

// serveLegacy serves a message, or a batch, of a revision with sessions.
func (p *posted) serveLegacy(m Message, isResponse bool, batch iter.Seq[[]byte]) {
	initialize := m.Method == methodInitialize && m.IsRequest()
	if p.h.opts.Stateless {
		if initialize {
			p.initialize(m)
		} else {
			p.serveStateless(m, isResponse, batch)
		}
		return
	}
	hs, status, bad := p.h.session(p.r, p.server, p.principal)
	switch {
	case bad != nil && initialize:
		p.initialize(m)
		return
	case bad != nil:
		p.refuse(status, bad)
		return
	}
	defer hs.leave()
	p.deliver(m, isResponse, batch, hs)
}

// session finds the session that a request belongs to, and marks it as used
// until leave.
func (h *HTTPHandler) session(r *http.Request, s *Server, principal string) (*httpSession, int, *Error) {
	ids := r.Header[headerSession]
	if len(ids) != 1 || ids[0] == "" {
		return nil, http.StatusBadRequest, Errorf(CodeInvalidRequest, "the header Mcp-Session-Id must be there, once: initialize opens a session")
	}
	hs := h.lookUp(ids[0], s, principal, false)
	if hs == nil {
		return nil, http.StatusNotFound, Errorf(CodeInvalidRequest, "no such session: initialize opens one")
	}
	return hs, 0, nil
}

// lookUp returns the session of an id, marked as used until leave; nil if
// there is none. Another's session is as good as none
// (2025-11-25 basic/security_best_practices § Session Hijacking).
func (h *HTTPHandler) lookUp(id string, s *Server, principal string, old bool) *httpSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	hs := h.sessions[id]
	if hs == nil || hs.old != old || hs.ss.server != s || hs.principal != principal || !hs.enter() {
		return nil
	}
	return hs
}

func (hs *httpSession) enter() bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.ss.core.ctx.Err() != nil {
		return false
	}
	hs.open++
	return true
}

func (hs *httpSession) leave() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.open--
	hs.used = time.Now()
}

// initialize opens a session, if all goes well: nothing is kept before.
func (p *posted) initialize(m Message) {
	h := p.h
	hs := &httpSession{h: h, id: newSessionID(), principal: p.principal, used: time.Now()}
	if !h.opts.Stateless && !h.reserve(hs) {
		h.tooMany(p.w, p.id)
		return
	}
	defer h.settle(hs, false)
	ss := p.enter(context.Background())
	if ss == nil {
		return
	}
	kept := false
	ss.passing = h.opts.Stateless
	ps := p.stream(m, ss)
	conn := ps.conn
	defer func() {
		ps.detach(conn)
		if !kept {
			ss.core.close(nil)
		}
		h.leave(ss)
	}()
	if !h.opts.Stateless {
		hs.ss, ss.core.out = ss, hs
		p.w.Header().Set(headerSession, hs.id)
		ps.opened = func(code int) (bad *Error) {
			// Middleware may have answered itself, and nobody knows the id of a client that left.
			ok := code == 0 && ss.initialized() && p.r.Context().Err() == nil
			if kept, bad = h.settle(hs, ok); !kept {
				p.w.Header().Del(headerSession)
			}
			return bad
		}
	}
	if req := ss.core.accept(p.request(m, ss.core, ps)); req != nil {
		ps.keepAlive()
		ss.core.serve(req)
	}
}

// initialized reports whether initialize has succeeded.
func (ss *ServerSession) initialized() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.rev != nil
}

func newSessionID() string {
	id := make([]byte, 16)
	rand.Read(id)
	return hex.EncodeToString(id)
}

// reserve makes room for a session that is about to open, until settle.
func (h *HTTPHandler) reserve(hs *httpSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions)+h.opening >= h.opts.MaxSessions {
		return false
	}
	h.opening++
	hs.reserved = true
	return true
}

// settle takes in a session whose room is reserved, if that is ok, or gives
// up the room. It does nothing the second time.
func (h *HTTPHandler) settle(hs *httpSession, ok bool) (kept bool, bad *Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !hs.reserved {
		return false, nil
	}
	hs.reserved = false
	h.opening--
	switch {
	case !ok:
		return false, nil
	case h.closing:
		return false, errShuttingDown
	}
	h.sessions[hs.id] = hs
	if h.sweeper == nil && h.opts.IdleTimeout > 0 {
		h.sweeper = time.AfterFunc(h.opts.IdleTimeout/4, h.sweep)
	}
	return true, nil
}

// tooMany refuses a session that there is no room for.
func (h *HTTPHandler) tooMany(w http.ResponseWriter, id ID) {
	w.Header().Set("Retry-After", "60")
	refuseHTTP(w, http.StatusServiceUnavailable, id, Errorf(CodeInternalError, "there are too many sessions"))
}

// sweep ends the sessions that have been idle for too long. There is one
// timer for all of them.
func (h *HTTPHandler) sweep() {
	limit := time.Now().Add(-h.opts.IdleTimeout)
	var old []*httpSession
	h.mu.Lock()
	for id, hs := range h.sessions {
		if hs.idleSince(limit) {
			delete(h.sessions, id)
			old = append(old, hs)
		}
	}
	if len(h.sessions) > 0 && !h.closing {
		h.sweeper = time.AfterFunc(h.opts.IdleTimeout/4, h.sweep)
	} else {
		h.sweeper = nil
	}
	h.mu.Unlock()
	for _, hs := range old {
		hs.end()
	}
}

// idleSince reports whether nothing has happened since then and nothing runs.
func (hs *httpSession) idleSince(t time.Time) bool {
	core := hs.ss.core
	core.mu.Lock()
	busy, served := core.busy, core.served
	core.mu.Unlock()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return core.ctx.Err() != nil || busy == 0 && hs.open == 0 && hs.used.Before(t) && served.Before(t)
}

// end closes a session that the handler has let go of. Its streams end with
// its context.
func (hs *httpSession) end() {
	hs.ss.core.close(nil)
	hs.keeping.Lock()
	defer hs.keeping.Unlock()
	hs.dropped = true
	if err := hs.h.opts.Events.Drop(context.Background(), hs.id); err != nil {
		hs.h.log.Error("mcp: events were not dropped", "error", err)
	}
}

// delete ends a session for its client.
func (h *HTTPHandler) delete(w http.ResponseWriter, r *http.Request, s *Server) {
	hs := h.sessionOf(w, r, s)
	if hs == nil {
		return
	}
	defer hs.leave()
	h.mu.Lock()
	delete(h.sessions, hs.id)
	h.mu.Unlock()
	hs.end()
	w.WriteHeader(http.StatusNoContent)
}

// sessionOf is session for a GET or DELETE, which it refuses if there is none.
func (h *HTTPHandler) sessionOf(w http.ResponseWriter, r *http.Request, s *Server) *httpSession {
	if v := r.Header.Get(headerVersion); v != "" && s.revision(v) == nil {
		refuseHTTP(w, http.StatusBadRequest, ID{}, s.refuseVersion(v))
		return nil
	}
	hs, status, bad := h.session(r, s, h.principal(r))
	if bad != nil {
		refuseHTTP(w, status, ID{}, bad)
	}
	return hs
}

func (h *HTTPHandler) principal(r *http.Request) string {
	if h.opts.Principal == nil {
		name, _ := r.Context().Value(principalKey{}).(string)
		return name
	}
	return h.opts.Principal(r)
}

// principalKey is where authorization in front of the handler leaves the name
// of who sends a request.
type principalKey struct{}

// deliver gives a message, or a batch, to its session and answers the POST.
// Losing the connection cancels nothing (2025-11-25 basic/transports §
// Sending Messages to the Server).
func (p *posted) deliver(m Message, isResponse bool, batch iter.Seq[[]byte], hs *httpSession) {
	ss := hs.ss
	if batch == nil && !m.IsRequest() {
		ss.core.route(m, isResponse, nil, discard{}, p.dress)
		writeAccepted(p.w)
		return
	}
	if !p.h.enter(ss) {
		p.refuse(http.StatusServiceUnavailable, errShuttingDown)
		return
	}
	defer p.h.leave(ss)
	ps := p.stream(m, ss)
	conn := ps.conn
	conn.done = make(chan struct{})
	hs.adopt(ps)
	ps.keepAlive()
	if batch != nil {
		ss.core.deliverBatch(batch, ps, p.dress)
	} else if req := ss.core.accept(p.request(m, ss.core, ps)); req != nil {
		go ss.core.serve(req)
	}
	select {
	case <-conn.done:
	case <-p.r.Context().Done():
	}
	ps.detach(conn)
}

// serveStateless serves a message of a revision with sessions without one:
// the header says which (absent: 2025-03-26), and nothing is known of the
// client. It waits for the answer though the connection may be lost: that
// cancels nothing.
func (p *posted) serveStateless(m Message, isResponse bool, batch iter.Seq[[]byte]) {
	rev := p.server.revision(p.r.Header.Get(headerVersion))
	if rev == nil {
		rev = p.server.revision(Version20250326)
	}
	if rev == nil {
		rev = p.server.legacy()
	}
	ss := p.enter(context.WithoutCancel(p.r.Context()))
	if ss == nil {
		return
	}
	defer p.h.leave(ss)
	defer ss.core.close(nil)
	ss.rev, ss.client = rev, &clientFacts{}
	ss.ready.Store(true) // or it never is
	ss.core.batches = rev.batches
	if batch == nil && !m.IsRequest() {
		ss.core.route(m, isResponse, nil, discard{}, p.dress)
		writeAccepted(p.w)
		return
	}
	ps := p.stream(m, ss)
	conn := ps.conn
	defer ps.detach(conn)
	ps.keepAlive()
	if batch != nil {
		conn.done = make(chan struct{})
		ss.core.deliverBatch(batch, ps, p.dress)
		<-conn.done
	} else if req := ss.core.accept(p.request(m, ss.core, ps)); req != nil {
		ss.core.serve(req)
	}
}

// adopt gives a stream its number. Until it is answered the handler counts it
// as served, though its POST may have returned.
func (hs *httpSession) adopt(ps *postStream) {
	hs.h.stay(hs.ss)
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.streams++
	ps.owner, ps.number = hs, strconv.Itoa(hs.streams)
	if hs.posts == nil {
		hs.posts = make(map[string]*postStream)
	}
	hs.posts[ps.number] = ps
}

func (hs *httpSession) forget(ps *postStream) {
	hs.mu.Lock()
	delete(hs.posts, ps.number)
	hs.mu.Unlock()
	hs.h.leave(hs.ss)
}

// store keeps an event of a stream and returns its id, "" if there is none.
func (hs *httpSession) store(stream string, frame []byte) string {
	hs.keeping.RLock()
	defer hs.keeping.RUnlock()
	if hs.dropped {
		return ""
	}
	id, err := hs.h.opts.Events.Append(context.Background(), hs.id, stream, frame)
	if err != nil {
		hs.h.log.Error("mcp: an event was not kept", "error", err)
		return ""
	}
	return id
}

// getPrefix begins the numbers of streams that belong to no request.
const getPrefix = "g"

// A getStream is an open GET.
type getStream struct {
	number string // of the stream within the session, for event ids

	mu   sync.Mutex
	conn *response // nil when it has ended
}

// end ends the stream; retry, if not 0, is when its client may come back.
func (g *getStream) end(retry time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return
	}
	if retry > 0 {
		g.conn.retry(retry)
	}
	g.conn.release()
	g.conn = nil
}

// retry writes when the client may come back.
func (c *response) retry(after time.Duration) error {
	return c.write(fmt.Appendf(nil, "retry: %d\n\n", max(after.Milliseconds(), 1)))
}

// event writes an event and reports whether it could.
func (g *getStream) event(name string, frame []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn != nil && g.conn.event(name, "", frame) == nil
}

// put keeps an event and writes it, and reports whether it could. Under g.mu
// both, so that events come in the order of their ids.
func (g *getStream) put(hs *httpSession, frame []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn != nil && g.conn.event("", hs.store(g.number, frame), frame) == nil
}

func (hs *httpSession) room(context.Context) error { return nil }

// put sends what belongs to no request: on one GET, or to the one that comes
// (2025-11-25 basic/transports § Listening for Messages from the Server).
func (hs *httpSession) put(frame []byte) error {
	for {
		hs.mu.Lock()
		if len(hs.gets) == 0 {
			if len(hs.waiting) >= maxWaiting {
				hs.waiting = hs.waiting[1:]
			}
			hs.waiting = append(hs.waiting, frame)
			hs.mu.Unlock()
			return nil
		}
		g := hs.gets[len(hs.gets)-1]
		hs.mu.Unlock()
		if g.put(hs, frame) {
			return nil
		}
		hs.drop(g, 0)
	}
}

// answer: what answers no request of a POST goes nowhere.
func (hs *httpSession) answer([]byte, int) {}

func (hs *httpSession) drop(g *getStream, retry time.Duration) {
	hs.mu.Lock()
	hs.gets = slices.DeleteFunc(hs.gets, func(other *getStream) bool { return other == g })
	hs.mu.Unlock()
	g.end(retry)
}

// get serves the stream of what belongs to no request, or lets a client go on
// with a stream whose connection it lost.
func (h *HTTPHandler) get(w http.ResponseWriter, r *http.Request, s *Server) {
	if !parseAccept(r.Header["Accept"]).stream {
		refuseHTTP(w, http.StatusNotAcceptable, ID{}, Errorf(CodeInvalidRequest, "the client must accept text/event-stream"))
		return
	}
	hs := h.sessionOf(w, r, s)
	if hs == nil {
		return
	}
	defer hs.leave()
	h.mu.Lock()
	closing := h.closing
	h.mu.Unlock()
	if closing {
		refuseHTTP(w, http.StatusServiceUnavailable, ID{}, errShuttingDown)
		return
	}
	stream, last := "", r.Header.Get(headerLastEvent)
	if last != "" {
		var err error
		if stream, _, err = h.opts.Events.After(r.Context(), hs.id, last); err != nil {
			refuseHTTP(w, http.StatusBadRequest, ID{}, Errorf(CodeInvalidRequest, "the header Last-Event-ID names no event that is kept"))
			return
		}
	}
	if conn := h.openStream(w, r); stream == "" || strings.HasPrefix(stream, getPrefix) {
		hs.listen(r.Context(), conn, stream, last)
	} else {
		hs.resume(r.Context(), conn, stream, last)
	}
}

// openStream makes a stream of the response to a GET.
func (h *HTTPHandler) openStream(w http.ResponseWriter, r *http.Request) *response {
	liftDeadlines(http.NewResponseController(w), r)
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{})
	return &response{h: h, w: w, control: control, accept: accepted{stream: true}, done: make(chan struct{})}
}

// listen holds a GET open: a new stream, or a number's after its event last.
func (hs *httpSession) listen(ctx context.Context, conn *response, number, last string) {
	g := &getStream{conn: conn, number: number}
	for _, other := range hs.displaced(g) {
		hs.drop(other, getRetry)
	}
	defer hs.drop(g, 0)
	g.mu.Lock()
	hs.mu.Lock()
	hs.gets = append(hs.gets, g)
	waiting := hs.waiting
	hs.waiting = nil
	hs.mu.Unlock()
	var err error
	switch {
	case last != "":
		err = hs.replay(ctx, conn, last)
	case hs.ss.primes():
		err = conn.event("", hs.store(g.number, nil), nil)
	default:
		err = conn.comment()
	}
	for len(waiting) > 0 && err == nil {
		err = conn.event("", hs.store(g.number, waiting[0]), waiting[0])
		waiting = waiting[1:]
	}
	g.mu.Unlock()
	if err != nil {
		hs.mu.Lock()
		hs.waiting = append(waiting, hs.waiting...)
		hs.mu.Unlock()
		return
	}
	hs.hold(ctx, g)
}

// displaced gives a new stream its number, unless it goes on with an old one,
// and returns the streams that have to go for it: who had that number, and
// the oldest when there are too many.
func (hs *httpSession) displaced(g *getStream) (others []*getStream) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if g.number == "" {
		hs.streams++
		g.number = getPrefix + strconv.Itoa(hs.streams)
	}
	for i, other := range hs.gets {
		if other.number == g.number || i == 0 && len(hs.gets) >= maxGets {
			others = append(others, other)
		}
	}
	return others
}

// replay writes the events after one, and something in any case: then the
// client knows that it is connected.
func (hs *httpSession) replay(ctx context.Context, conn *response, last string) error {
	_, events, err := hs.h.opts.Events.After(ctx, hs.id, last)
	if err != nil || len(events) == 0 {
		return errors.Join(err, conn.comment())
	}
	for _, e := range events {
		if err := conn.event("", e.ID, e.Data); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps a GET open until either side has enough of it.
func (hs *httpSession) hold(ctx context.Context, g *getStream) {
	g.mu.Lock()
	conn := g.conn
	g.mu.Unlock()
	if conn == nil {
		return
	}
	ticker := time.NewTicker(hs.h.opts.Silence)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			g.mu.Lock()
			alive := g.conn != nil && g.conn.comment() == nil
			g.mu.Unlock()
			if !alive {
				return
			}
		case <-conn.done:
			return
		case <-ctx.Done():
			return
		case <-hs.ss.core.ctx.Done():
			return
		}
	}
}

// resume goes on with the stream of an earlier POST, until its answer.
func (hs *httpSession) resume(ctx context.Context, conn *response, stream, last string) {
	hs.mu.Lock()
	ps := hs.posts[stream]
	hs.mu.Unlock()
	replay := func() error { return hs.replay(ctx, conn, last) }
	if ps == nil { // answered: what is kept is all there is
		replay()
		return
	}
	if !ps.attach(conn, replay) {
		return
	}
	select {
	case <-conn.done:
	case <-ctx.Done():
	}
	ps.detach(conn)
}

// An EventStore keeps the events of streams of revisions before 2026-07-28,
// so that clients can go on with a stream after its connection broke. Its
// methods may be called concurrently. Sessions and streams are named by the
// handler; handlers that share sessions can share a store.
type EventStore interface {
	// Append keeps an event and returns its id: unique within the session
	// and printable ASCII. data may be empty; it is the caller's again when
	// Append returns.
	Append(ctx context.Context, session, stream string, data []byte) (id string, err error)
	// After returns the stream that the event with an id belongs to, and its
	// events after that one. An id that is not known is an error.
	After(ctx context.Context, session, id string) (stream string, events []Event, err error)
	// Drop forgets the events of a session.
	Drop(ctx context.Context, session string) error
}

// An Event is an event of a stream.
type Event struct {
	ID   string
	Data []byte
}

// NewMemoryEvents returns an EventStore that keeps up to maxBytes in memory;
// beyond, the oldest events are forgotten.
func NewMemoryEvents(maxBytes int) EventStore {
	return &memoryEvents{max: maxBytes, sessions: make(map[string]*memorySession)}
}

type memoryEvents struct {
	mu       sync.Mutex
	max      int
	size     int
	order    []*memoryEvent // oldest first
	gone     int            // how many of those count no more
	sessions map[string]*memorySession
}

type memorySession struct {
	last    int                       // number of the last event, of all streams
	streams map[string][]*memoryEvent // oldest first
}

type memoryEvent struct {
	session, stream string
	number          int
	data            []byte
	gone            bool
}

// eventCost is what an event costs beside its data.
const eventCost = 128

func (e *memoryEvent) id() string { return e.stream + "-" + strconv.Itoa(e.number) }

func (m *memoryEvents) Append(_ context.Context, session, stream string, data []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		s = &memorySession{streams: make(map[string][]*memoryEvent)}
		m.sessions[session] = s
	}
	s.last++
	e := &memoryEvent{session: session, stream: stream, number: s.last, data: bytes.Clone(data)}
	s.streams[stream] = append(s.streams[stream], e)
	m.order = append(m.order, e)
	m.size += len(data) + eventCost
	for m.size > m.max && len(m.order) > 0 {
		m.forget(m.order[0])
		m.order = m.order[1:]
	}
	return e.id(), nil
}

// forget removes the oldest event of its stream. What counts the events of a
// session stays until it is dropped: no id may come twice.
func (m *memoryEvents) forget(e *memoryEvent) {
	if e.gone {
		m.gone--
		return
	}
	m.size -= len(e.data) + eventCost
	s := m.sessions[e.session]
	if s.streams[e.stream] = s.streams[e.stream][1:]; len(s.streams[e.stream]) == 0 {
		delete(s.streams, e.stream)
	}
}

func (m *memoryEvents) After(_ context.Context, session, id string) (string, []Event, error) {
	stream, _, _ := strings.Cut(id, "-")
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []*memoryEvent
	if s := m.sessions[session]; s != nil {
		kept = s.streams[stream]
	}
	at := slices.IndexFunc(kept, func(e *memoryEvent) bool { return e.id() == id })
	if at < 0 {
		return "", nil, errors.New("mcp: no such event")
	}
	events := []Event{}
	for _, e := range kept[at+1:] {
		events = append(events, Event{ID: e.id(), Data: e.data})
	}
	return stream, events, nil
}

func (m *memoryEvents) Drop(_ context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		return nil
	}
	for _, events := range s.streams {
		for _, e := range events {
			m.size -= len(e.data) + eventCost
			e.gone, e.data = true, nil
			m.gone++
		}
	}
	delete(m.sessions, session)
	if m.gone > len(m.order)/2 { // not for each session: there may be many
		m.order = slices.DeleteFunc(m.order, func(e *memoryEvent) bool { return e.gone })
		m.gone = 0
	}
	return nil
}

// encodeHeader writes a value so that it can travel in a header: as it is, if
// that is safe, and in base64 between markers otherwise
// (2026-07-28 basic/transports/streamable-http § Value Encoding).
func encodeHeader(value string) string {
	safe := value == strings.Trim(value, " \t") && !isEncodedHeader(value)
	for i := 0; safe && i < len(value); i++ {
		safe = value[i] >= ' ' && value[i] < 0x7f || value[i] == '\t'
	}
	if safe {
		return value
	}
	return headerMark + base64.StdEncoding.EncodeToString([]byte(value)) + headerEnd
}

const headerMark, headerEnd = "=?base64?", "?="

func isEncodedHeader(value string) bool {
	return len(value) >= len(headerMark)+len(headerEnd) && strings.HasPrefix(value, headerMark) && strings.HasSuffix(value, headerEnd)
}

// decodeHeader reads what encodeHeader wrote. A value with characters that
// are not permitted is refused.
func decodeHeader(value string) (string, bool) {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return "", false
		}
	}
	if !isEncodedHeader(value) {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(value[len(headerMark) : len(value)-len(headerEnd)])
	return string(text), err == nil
}

// An HTTPError is the answer of an HTTP server that is no success: not one of
// the protocol's, or an error of the protocol's with a status of HTTP.
type HTTPError struct {
	Method string // of the message that was sent; "GET" for a stream of events
	Status int
	Type   string // the Content-Type
	Body   string // the beginning of it
	// Answer is the server's error if the body is one; errors.As finds it.
	Answer *Error
}

// Error says what came instead of a result.
func (e *HTTPError) Error() string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	if e.Answer != nil {
		return fmt.Sprintf("%s (HTTP %s)", e.Answer.Error(), status)
	}
	text := fmt.Sprintf("mcp: the answer to %s is %s, %q", e.Method, status, e.Type)
	if e.Body != "" {
		text += fmt.Sprintf(": %.200q", e.Body)
	}
	return text
}

// Unwrap returns Answer.
func (e *HTTPError) Unwrap() error {
	if e.Answer == nil {
		return nil
	}
	return e.Answer
}

// unknownRevision reports whether this is how a server answers that does not
// know the revision it was asked in (2026-07-28 basic/transports/
// streamable-http § Backward Compatibility): not one that wants credentials,
// is overloaded or has failed.
func (e *HTTPError) unknownRevision() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return e.Status >= 400 && e.Status < 500
}

// temporary reports whether the same request may succeed later.
func (e *HTTPError) temporary() bool {
	return e.Status >= 500 && e.Status != http.StatusNotImplemented ||
		e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// HTTP is the transport to a server at a URL, of every revision.
//
// Calls fail one by one: the session goes on when the network or the server
// fails, and errors.As finds an [*HTTPError] if the server answered. What a
// server before 2026-07-28 loses with its session is set again in a new one,
// and what a subscription may have missed meanwhile counts as changed; the
// same is true of a stream of a newer server's changes that broke.
type HTTP struct {
	// URL is the MCP endpoint.
	URL string
	// Client makes the requests; nil means one with the settings of
	// [http.DefaultTransport]. Its Timeout, if any, cuts streams, too.
	// Redirects to another origin are never followed, whatever it says.
	Client *http.Client
	// Header is sent with every request, but for what the protocol says
	// itself: Accept, Content-Type, Last-Event-ID and all that begins with
	// "Mcp-" are left out.
	Header http.Header
	// Auth supplies credentials; nil means none.
	Auth Authorizer
	// MaxMessage is the size of the largest answer or event in bytes; 0 means
	// 16 MiB and 64 KiB.
	MaxMessage int
	// Retries is how often in a row, and without anything new, a stream that
	// broke is asked for again: after a second, and ever longer, up to 30
	// seconds, or as the server says; 0 means 5, negative means never.
	Retries int
	// NoStream does not open the stream on which a server of a revision
	// before 2026-07-28 sends what belongs to no request.
	NoStream bool
	// Logger gets what the transport notices. nil logs nothing.
	Logger *slog.Logger
}

// An Authorizer supplies the credentials of HTTP requests. Its methods may be
// called concurrently. What time they take, for the user to sign in, does not
// count for the timeout of a call.
type Authorizer interface {
	// Authorize adds credentials to a request that is about to be sent.
	Authorize(ctx context.Context, r *http.Request) error
	// Challenge is shown a response of status 401 or 403, whose body it must
	// not touch, and reports whether the request should be sent again, with
	// other credentials; four times at most.
	Challenge(ctx context.Context, r *http.Response) (again bool, err error)
}

// An authError is why there are no credentials.
type authError struct{ error }

func (e *authError) Unwrap() error   { return e.error }
func (e *authError) temporary() bool { return false }

// Connect prepares a connection. Nothing is sent before the first message.
func (t *HTTP) Connect(context.Context) (Conn, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("mcp: the URL is none of http or https") // there may be secrets in it
	}
	c := &httpConn{
		t: *t, url: u, in: make(chan incoming, 16), running: make(map[ID]*posting),
		tools: make(map[string][]headerParam), log: t.Logger,
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.t.MaxMessage <= 0 {
		c.t.MaxMessage = 16<<20 + 64<<10
	}
	c.t.Header = make(http.Header)
	for name, values := range t.Header {
		switch name = http.CanonicalHeaderKey(name); {
		case strings.HasPrefix(name, "Mcp-"), name == "Accept", name == "Content-Type", name == headerLastEvent:
		default:
			c.t.Header[name] = values
		}
	}
	if t.Client != nil {
		c.client = *t.Client
	} else if base, ok := http.DefaultTransport.(*http.Transport); ok {
		own := base.Clone()
		own.MaxIdleConnsPerHost = 64
		c.client.Transport, c.idle = own, own.CloseIdleConnections
	}
	c.client.CheckRedirect = sameOriginOnly(c.client.CheckRedirect)
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// pause makes HTTP a transport over which every request travels by itself.
func (t *HTTP) pause(failed int) (wait time.Duration, more bool) {
	retries := t.Retries
	if retries == 0 {
		retries = 5
	}
	wait = min(time.Second<<min(failed, 10), maxPause)
	return wait + time.Duration(mrand.Int64N(int64(wait/4))), failed < retries
}

// maxPause is how long a stream that broke waits at most to be asked for
// again, unless the server wants more. One that lasted so long did work.
const maxPause = 30 * time.Second

// sameOriginOnly follows redirects that keep method, scheme and host: session
// ids and keys in headers are for the server that they were given for.
func sameOriginOnly(more func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		first := via[0]
		if r.Method != first.Method || r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host || len(via) > 5 {
			return http.ErrUseLastResponse
		}
		if more != nil {
			return more(r, via)
		}
		return nil
	}
}

// An httpConn is the client's end of a connection: every message is a POST of
// its own, and what comes back is read here.
type httpConn struct {
	t      HTTP
	url    *url.URL
	client http.Client
	idle   func() // closes idle connections that are ours; may be nil
	log    *slog.Logger
	ctx    context.Context // ends with the connection
	stop   context.CancelFunc
	in     chan incoming
	close  sync.Once
	work   sync.WaitGroup // every goroutine

	mu      sync.Mutex
	running map[ID]*posting          // requests
	tools   map[string][]headerParam // of the tools that have been listed
	version string                   // to say in headers of messages that do not say it themselves
	modern  bool
	spoken  *revision                                     // what initialize agreed on
	opened  chan struct{}                                 // closed when notifications/initialized has been sent; nil before
	last    chan struct{}                                 // closed when the notification before has been sent
	post    func(ctx context.Context, frame []byte) error // instead, with a server of HTTP+SSE

	opening *posting // initialize, to say it again
	session httpClientSession
	forgot  bool     // the server does not know the session any more
	renewal *renewal // under way
	renewed func()   // called for a new session; must not block; may be nil
	stream  listening
	cut     context.CancelFunc // has the stream be of the newest session; may be nil
	onAsk   func()             // called when the stream has been asked for; may be nil

	asking   int       // requests that the Authorizer holds up, perhaps for the user
	answered time.Time // when the last of them went on
}

// paused implements pauser.
func (c *httpConn) paused() (now bool, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking > 0, c.answered
}

// pause notes that the Authorizer works, until the function it returns is called.
func (c *httpConn) pause() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asking--
		c.answered = time.Now()
	}
}

// An httpClientSession is what a client knows of its session.
type httpClientSession struct {
	id     string // "" if the server gave none
	number int    // of the sessions so far
}

// A renewal opens a session in place of one that the server has lost.
type renewal struct {
	done    chan struct{}
	session httpClientSession // these are set once it is done
	err     error
}

// listening says what became of the server's own stream.
type listening int

const (
	notListening listening = iota // not yet, or the server has none
	isListening
	gaveUp // it is worth another try when the server is there
)

// A posting is a message to be posted, with what its headers need.
type posting struct {
	m       *Message
	frame   []byte
	params  *paramsView
	version string // that the message says itself
	modern  bool
	cancel  context.CancelFunc // ends the POST of a request
	session httpClientSession  // that it was sent in last
}

// incoming is what Read returns.
type incoming struct {
	frame []byte
	err   error
}

func (c *httpConn) Read(ctx context.Context) ([]byte, error) {
	select {
	case in := <-c.in:
		return in.frame, in.err
	case <-c.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// push hands something to Read.
func (c *httpConn) push(frame []byte, err error) {
	select {
	case c.in <- incoming{frame, err}:
	case <-c.ctx.Done():
	}
}

// run runs f on a goroutine that Close waits for.
func (c *httpConn) run(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		f()
	}()
}

// Write sends a message; it does not wait for what comes of it.
func (c *httpConn) Write(_ context.Context, frame []byte) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	frame = bytes.Clone(frame)
	p := &posting{m: new(Message), frame: frame, params: noParams}
	if _, batch := splitBatch(frame); batch { // the answers to one of the server's
		c.enqueue(p)
		return nil
	}
	m, isResponse, bad := decodeMessage(frame)
	if bad == nil && !isResponse {
		p.params, bad = scanParams(m.Params)
	}
	if bad != nil {
		return bad
	}
	p.m = &m
	p.version, p.modern = stringValue(p.params.version)
	switch {
	case m.Method == notifyCancelled && c.cancelled(&m):
		// closing the stream says so (2026-07-28 basic/patterns/cancellation)
	case m.IsRequest():
		c.begin(p)
	default:
		c.enqueue(p)
	}
	return nil
}

// begin posts a request. One in a new session waits until the server was told
// that it has begun.
func (c *httpConn) begin(p *posting) {
	ctx, cancel := context.WithCancel(c.ctx)
	p.cancel = cancel
	c.mu.Lock()
	c.running[p.m.ID] = p
	switch {
	case p.m.Method == methodInitialize:
		c.opening, c.opened, c.version, c.modern = p, nil, "", false
		c.session, c.forgot = httpClientSession{number: c.session.number + 1}, false
	case p.modern:
		c.version, c.modern = p.version, true
	}
	opened := c.opened
	c.mu.Unlock()
	c.run(func() {
		defer cancel()
		if opened != nil && !p.modern {
			select {
			case <-opened:
			case <-ctx.Done():
			}
		}
		c.request(ctx, p)
	})
}

// enqueue posts what has no answer, after the notification before.
func (c *httpConn) enqueue(p *posting) {
	c.mu.Lock()
	before, sent := c.last, make(chan struct{})
	if p.m.Method != "" {
		c.last = sent
	}
	if p.m.Method == notifyInitialized {
		c.opened = sent
	}
	c.mu.Unlock()
	c.run(func() {
		defer close(sent)
		if before != nil {
			select {
			case <-before:
			case <-c.ctx.Done():
				return
			}
		}
		c.send(p)
	})
}

// cancelled ends the POST of a request that is no longer wanted, at a
// revision where that is how the server gets to know it. An earlier one is
// told by the notification.
func (c *httpConn) cancelled(m *Message) bool {
	var cancelled CancelledParams
	if decodeAt(m.Params, &cancelled, revLatest, false) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.running[cancelled.RequestID]
	switch {
	case p == nil:
		return c.modern
	case p.modern:
		p.cancel()
	default: // the server ends the POST, but we do not wait for ever
		time.AfterFunc(sendTime, p.cancel)
	}
	return p.modern
}

const (
	sendTime   = 30 * time.Second       // for a message without an answer
	closeTime  = 2 * time.Second        // to say goodbye
	lastTime   = 500 * time.Millisecond // for notifications on their way when that happens
	askTime    = 500 * time.Millisecond // until a stream counts as asked for
	restTime   = 250 * time.Millisecond // for the rest of a response, so that its connection can be used again
	refuseTime = 5 * time.Second        // for the body of a refusal
)

// send posts what has no answer.
func (c *httpConn) send(p *posting) {
	ctx, cancel := context.WithTimeout(c.ctx, sendTime)
	defer cancel()
	read := func(*http.Response) error { return nil }
	err := c.exchange(ctx, p, read)
	// net/http gives a connection on before it has told of a response without a
	// body. If the next request on it ends early, this one gets that one's
	// error, and nobody knows what the response was.
	if ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = c.exchange(ctx, p, read)
	}
	if err != nil && c.ctx.Err() == nil {
		c.log.Warn("mcp: message not delivered", "method", p.m.Method, "error", err)
	}
	if p.m.Method == notifyInitialized {
		c.listenNow(ctx)
	}
}

// request posts a request and passes on what comes back.
func (c *httpConn) request(ctx context.Context, p *posting) {
	answer := func(r *http.Response) error { return c.answer(ctx, p, r) }
	err := c.exchange(ctx, p, answer)
	if c.refreshed(ctx, p, err) {
		err = c.exchange(ctx, p, answer)
	}
	c.mu.Lock()
	delete(c.running, p.m.ID)
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		c.push(nil, &CallError{ID: p.m.ID, Err: err})
	}
}

// exchange posts a message and gives the response to read, if it is one of
// the protocol's. If the server has lost the session another one is opened,
// and the message posted once more (2025-11-25 basic/transports § Session
// Management).
func (c *httpConn) exchange(ctx context.Context, p *posting, read func(*http.Response) error) error {
	c.mu.Lock()
	post := c.post
	c.mu.Unlock()
	switch {
	case post != nil:
		return post(ctx, p.frame)
	case p.m.Method == methodInitialize:
		return c.open(ctx, p, read)
	case p.modern:
		return c.postOnce(ctx, p, httpClientSession{}, read)
	}
	for again := false; ; again = true {
		session, err := c.current(ctx)
		if err != nil {
			return err
		}
		err = c.postOnce(ctx, p, session, read)
		if again || !lostSession(err, session) {
			return err
		}
		c.forget(session)
	}
}

// lostSession reports whether an error says that the server does not know the
// session: a 404 that is not about an unknown method.
func lostSession(err error, session httpClientSession) bool {
	var e *HTTPError
	return session.id != "" && errors.As(err, &e) && e.Status == http.StatusNotFound && (e.Answer == nil || e.Answer.Code != CodeMethodNotFound)
}

// open posts initialize. Where no server of Streamable HTTP answers, there may
// be one of HTTP+SSE (2026-07-28 basic/transports/streamable-http § Backward
// Compatibility).
func (c *httpConn) open(ctx context.Context, p *posting, read func(*http.Response) error) error {
	err := c.postOnce(ctx, p, httpClientSession{}, func(r *http.Response) error {
		c.mu.Lock()
		c.session.id = r.Header.Get(headerSession)
		c.mu.Unlock()
		return read(r)
	})
	if openSSE == nil || !oldServer(err) {
		return err
	}
	post, failed := openSSE(ctx, c)
	if failed != nil {
		return fmt.Errorf("%w; and as a server of HTTP+SSE: %w", err, failed)
	}
	c.mu.Lock()
	c.post = post
	c.mu.Unlock()
	return post(ctx, p.frame)
}

// openSSE tries the transport of 2024-11-05, in a build that has it: it opens
// its stream and returns how to send messages.
var openSSE func(ctx context.Context, c *httpConn) (post func(ctx context.Context, frame []byte) error, err error)

// oldServer reports whether an error to initialize may come from a server of
// HTTP+SSE: not one of 2026-07-28, nor one that says that it has no such
// method.
func oldServer(err error) bool {
	var e *HTTPError
	if !errors.As(err, &e) || isModernError(err) || e.Answer != nil && e.Answer.Code == CodeMethodNotFound {
		return false
	}
	return e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed
}

// postOnce posts a message in a session.
func (c *httpConn) postOnce(ctx context.Context, p *posting, session httpClientSession, read func(*http.Response) error) error {
	p.session = session
	header, err := c.headers(p)
	if err != nil {
		return err
	}
	r, err := c.do(ctx, http.MethodPost, c.url, header, p.frame)
	if err != nil {
		return err
	}
	if r.StatusCode >= 300 {
		return c.refusal(p, r)
	}
	defer finish(r)
	c.mu.Lock()
	again := c.stream == gaveUp
	c.mu.Unlock()
	if again && !p.modern {
		c.listen(func() {})
	}
	if p.m.IsRequest() {
		return read(r)
	}
	return nil
}

// headers says in headers what a message says
// (2026-07-28 basic/transports/streamable-http § Request Metadata).
func (c *httpConn) headers(p *posting) (http.Header, error) {
	header := http.Header{"Content-Type": jsonType, "Accept": {"application/json, text/event-stream"}}
	if p.m.Method == methodInitialize {
		return header, nil // nothing has been agreed on
	}
	c.mu.Lock()
	version, modern := c.version, c.modern
	c.mu.Unlock()
	if p.modern {
		version, modern = p.version, true
	}
	c.stamp(header, version, p.session)
	if !modern || p.m.Method == "" {
		return header, nil
	}
	header[headerMethod] = []string{encodeHeader(p.m.Method)}
	named := namedBy(p.m.Method, p.params)
	name, _ := stringValue(named)
	if named != nil {
		header[headerName] = []string{encodeHeader(name)}
	}
	if p.m.Method != methodToolsCall {
		return header, nil
	}
	c.mu.Lock()
	mirrored := c.tools[name]
	c.mu.Unlock()
	for _, param := range mirrored {
		if raw := param.value(p.params.arguments); raw != nil {
			text, err := param.text(raw)
			if err != nil {
				return nil, fmt.Errorf("mcp: tool %s: %w", name, err)
			}
			header[http.CanonicalHeaderKey(headerParamName+param.header)] = []string{encodeHeader(text)}
		}
	}
	return header, nil
}

// stamp writes the headers that every request has, POST or not, once there is
// something to say.
func (c *httpConn) stamp(header http.Header, version string, session httpClientSession) {
	if len(version) > 0 {
		header[headerVersion] = []string{version}
	}
	if session.id != "" {
		header[headerSession] = []string{session.id}
	}
}

// maxChallenges is how often one request is sent again with other credentials:
// a token, a nonce for its proof, more scopes, and a nonce again.
const maxChallenges = 4

// do sends one HTTP request, with credentials, and again if they were not the
// right ones.
func (c *httpConn) do(ctx context.Context, method string, to *url.URL, header http.Header, body []byte) (*http.Response, error) {
	for challenged := 0; ; challenged++ {
		var content io.Reader
		if body != nil {
			content = bytes.NewReader(body)
		}
		r, err := http.NewRequestWithContext(ctx, method, to.String(), content)
		if err != nil {
			return nil, errors.New("mcp: the request cannot be made")
		}
		maps.Copy(r.Header, c.t.Header)
		maps.Copy(r.Header, header)
		if c.t.Auth != nil {
			done := c.pause()
			err := c.t.Auth.Authorize(ctx, r)
			if done(); err != nil {
				return nil, &authError{err}
			}
		}
		response, err := c.client.Do(r)
		if err != nil {
			return nil, failedRequest(method, to, err)
		}
		if challenged == maxChallenges || c.t.Auth == nil || response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			return response, nil
		}
		done := c.pause()
		retry, err := c.t.Auth.Challenge(ctx, response)
		if done(); err != nil {
			finish(response)
			return nil, &authError{err}
		}
		if !retry {
			return response, nil
		}
		finish(response)
	}
}

// failedRequest is the error of a request that got no response. It names the
// host only: there may be secrets in the rest of a URL.
func failedRequest(method string, to *url.URL, err error) error {
	var e *url.Error
	for errors.As(err, &e) {
		err = e.Err
	}
	return fmt.Errorf("mcp: %s to %s: %w", method, to.Host, err)
}

// finish closes a response. It reads a little of what is left, for a moment,
// so that the connection can be used again.
func finish(r *http.Response) {
	t := time.AfterFunc(restTime, func() { r.Body.Close() })
	defer t.Stop()
	io.CopyN(io.Discard, r.Body, 64<<10)
	r.Body.Close()
}

// refusal reads the response of a server that did not do what it was asked
// for, and closes it.
func (c *httpConn) refusal(p *posting, r *http.Response) error {
	e := c.httpError(p.m.Method, p.session, r)
	if e.Type != "application/json" || !p.m.IsRequest() || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return e
	}
	answer, isResponse, bad := decodeMessage([]byte(e.Body))
	if bad == nil && isResponse && answer.Error != nil && (answer.ID == p.m.ID || answer.ID.IsZero()) {
		e.Answer = answer.Error
	}
	return e
}

// httpError makes an error of a response, which it closes. A session's id in
// the text is taken out of it (2025-11-25 basic/transports § Session
// Management).
func (c *httpConn) httpError(method string, session httpClientSession, r *http.Response) *HTTPError {
	t := time.AfterFunc(refuseTime, func() { r.Body.Close() })
	body, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	t.Stop()
	finish(r)
	if len(session.id) >= 8 {
		body = bytes.ReplaceAll(body, []byte(session.id), []byte("(session)"))
	}
	return &HTTPError{Method: method, Status: r.StatusCode, Type: mediaType(r), Body: string(body)}
}

func mediaType(r *http.Response) string {
	typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return typ
}

// refreshed lists the tools anew after a call was refused because its headers
// do not match what the server knows of the tool, and reports whether to send
// it once more (2026-07-28 basic/transports/streamable-http § Custom Headers).
func (c *httpConn) refreshed(ctx context.Context, p *posting, err error) bool {
	var e *HTTPError
	if !p.modern || p.m.Method != methodToolsCall || !errors.As(err, &e) || e.Answer == nil || e.Answer.Code != CodeHeaderMismatch {
		return false
	}
	meta, err := without(p.params.meta, revLatest, metaProgressToken)
	if err == nil {
		err = c.relist(ctx, meta)
	}
	if err != nil {
		c.log.Warn("mcp: the tools cannot be listed anew", "error", err)
	}
	return err == nil
}

// relist reads the list of tools for their headers.
func (c *httpConn) relist(ctx context.Context, meta []byte) error {
	var cursor []byte
	for page := range maxPages {
		params := append([]byte(`{"_meta":`), meta...)
		if cursor != nil {
			params = append(append(params, `,"cursor":`...), cursor...)
		}
		params = append(params, '}')
		view, bad := scanParams(params)
		if bad != nil {
			return bad
		}
		m := &Message{ID: StringID(fmt.Sprintf("tools-%d", page)), Method: methodToolsList, Params: params}
		p := &posting{m: m, frame: appendRequest(nil, m.ID, m.Method, params), params: view}
		p.version, p.modern = stringValue(view.version)
		var answer *Message
		err := c.exchange(ctx, p, func(r *http.Response) error {
			return c.responses(ctx, p, r, func(_ []byte, got *Message) { answer = got })
		})
		switch {
		case err != nil:
			return err
		case answer.Error != nil:
			return answer.Error
		}
		c.learn(answer.Result)
		if cursor = rawMember(answer.Result, "nextCursor"); !bytes.HasPrefix(cursor, []byte{'"'}) {
			return nil
		}
	}
	return nil
}

// learn remembers which arguments of listed tools are sent in headers, and
// returns the result without the tools whose marks are against the rules: they
// cannot be called (2026-07-28 basic/transports/streamable-http § Custom
// Headers).
func (c *httpConn) learn(result []byte) []byte {
	list := rawMember(result, "tools")
	c.mu.Lock()
	nothing := len(c.tools) == 0
	c.mu.Unlock()
	if !bytes.HasPrefix(list, []byte{'['}) || nothing && !bytes.Contains(list, []byte(headerKeyword)) {
		return result
	}
	kept, dropped := []byte{'['}, false
	s := scanner{data: list}
	s.open('[')
	for n := 0; s.more(']', n); n++ {
		tool := s.skip()
		if !hasShape(tool, "object") || !c.learnTool(tool) {
			dropped = true
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, tool...)
	}
	if !dropped {
		return result
	}
	rest, err := without(result, revLatest, "tools")
	if err != nil { // a member is there twice: for the session to say
		return result
	}
	if rest = rest[:len(rest)-1]; len(rest) > 1 {
		rest = append(rest, ',')
	}
	return append(append(append(rest, `"tools":`...), kept...), ']', '}')
}

// learnTool reports whether a listed tool can be called.
func (c *httpConn) learnTool(tool []byte) bool {
	name, _ := stringValue(rawMember(tool, "name"))
	params, err := headerParams(rawMember(tool, "inputSchema"))
	if err != nil {
		c.log.Warn("mcp: tool left out", "tool", name, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tools, name)
	if len(params) > 0 && len(c.tools) < maxKnownTools {
		c.tools[name] = params
	}
	return err == nil
}

// maxKnownTools is of how many tools the headers are known.
const maxKnownTools = 10000

// answer passes on what comes back for a request, up to its response.
func (c *httpConn) answer(ctx context.Context, p *posting, r *http.Response) error {
	return c.responses(ctx, p, r, func(frame []byte, answer *Message) {
		switch {
		case answer.Error != nil && answer.ID != p.m.ID: // none; it can be about nothing else
			frame = appendError(nil, p.m.ID, answer.Error)
		case answer.Error != nil:
		case p.m.Method == methodInitialize:
			rev := c.agreed(answer)
			c.mu.Lock()
			c.spoken = rev
			c.mu.Unlock()
		case p.m.Method == methodToolsList && p.modern:
			frame = append(append(appendResultHead(nil, p.m.ID), c.learn(answer.Result)...), '}')
		}
		c.push(frame, nil)
	})
}

// agreed has the headers say from now on what was agreed on, at a revision
// that wants that, and returns it.
func (c *httpConn) agreed(answer *Message) *revision {
	version, _ := stringValue(rawMember(answer.Result, "protocolVersion"))
	rev := revisionOf(version)
	if rev != nil && rev.atLeast(rev20250618) {
		c.mu.Lock()
		c.version = version
		c.mu.Unlock()
	}
	return rev
}

// responses reads a response, JSON or a stream, and calls last with the one
// to p. What comes before goes to Read.
func (c *httpConn) responses(ctx context.Context, p *posting, r *http.Response, last func(frame []byte, answer *Message)) error {
	switch typ := mediaType(r); typ {
	case "application/json":
		body, err := io.ReadAll(io.LimitReader(r.Body, int64(c.t.MaxMessage)+1))
		if err != nil {
			return fmt.Errorf("mcp: the answer to %s was cut off: %w", p.m.Method, err)
		}
		if len(body) > c.t.MaxMessage {
			return fmt.Errorf("mcp: the answer to %s is larger than %d bytes", p.m.Method, c.t.MaxMessage)
		}
		answer := answerTo(p, body)
		if answer == nil {
			return fmt.Errorf("mcp: the answer to %s is no response to it", p.m.Method)
		}
		last(body, answer)
		return nil
	case "text/event-stream":
		return c.readStream(ctx, p, r, last)
	default:
		return c.httpError(p.m.Method, p.session, r)
	}
}

// answerTo returns the response to p if that is what a frame holds, perhaps
// as one of a batch. An error without an id is one, too.
func answerTo(p *posting, frame []byte) *Message {
	if members, ok := splitBatch(frame); ok {
		for member := range members {
			if m, isResponse, bad := decodeMessage(member); bad == nil && isResponse && m.ID == p.m.ID {
				return &m
			}
		}
		return nil
	}
	m, isResponse, bad := decodeMessage(frame)
	if bad != nil || !isResponse || m.ID != p.m.ID && !(m.ID.IsZero() && m.Error != nil) {
		return nil
	}
	return &m
}

// readStream reads the events that answer a request. When the connection
// breaks a legacy client asks for the rest, if the server gave events ids.
func (c *httpConn) readStream(ctx context.Context, p *posting, r *http.Response, last func(frame []byte, answer *Message)) error {
	answered := false
	pace := pacing{pause: c.t.pause}
	read := func(events *eventReader) error {
		for {
			e, err := events.next()
			if err != nil {
				return err
			}
			pace.event(e)
			if !e.isMessage() {
				continue
			}
			frame := []byte(e.data)
			if answer := answerTo(p, frame); answer != nil {
				answered = true
				last(frame, answer)
				return nil
			}
			c.push(frame, nil)
		}
	}
	err := read(newEventReader(r.Body, c.t.MaxMessage))
	for !answered {
		if p.modern || pace.last == "" || errors.Is(err, errEventTooLarge) {
			return fmt.Errorf("mcp: the connection was lost before %s was answered: %w", p.m.Method, noEOF(err))
		}
		finish(r)
		more := pace.wait(ctx)
		if more {
			_, err = c.events(ctx, p.session, pace.last, read)
			more = mayTryAgain(err)
		}
		if !more && !answered {
			return fmt.Errorf("mcp: %s: the stream could not be taken up again: %w", p.m.Method, noEOF(err))
		}
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// events opens a stream by GET, after the event last if that is not "", and
// reads it. opened says that it was there.
func (c *httpConn) events(ctx context.Context, session httpClientSession, last string, read func(*eventReader) error) (opened bool, err error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	c.stamp(header, version, session)
	if last != "" {
		header[headerLastEvent] = []string{last}
	}
	r, err := c.do(ctx, http.MethodGet, c.url, header, nil)
	if err != nil {
		return false, err
	}
	if r.StatusCode != http.StatusOK || mediaType(r) != "text/event-stream" {
		return false, c.httpError(http.MethodGet, session, r)
	}
	defer r.Body.Close()
	return true, read(newEventReader(r.Body, c.t.MaxMessage))
}

// listenNow opens the stream on which a legacy server sends what belongs to
// no request, and waits a moment until it has been asked for, so that nothing
// is missed that a call brings about.
func (c *httpConn) listenNow(ctx context.Context) {
	asked := make(chan struct{})
	c.listen(func() { close(asked) })
	t := time.NewTimer(askTime)
	defer t.Stop()
	select {
	case <-asked:
	case <-t.C:
	case <-ctx.Done():
	}
}

// listen has the server's own stream be open in the newest session. asked is
// called once when it has been asked for, or will not be.
func (c *httpConn) listen(asked func()) {
	c.mu.Lock()
	before := c.onAsk
	c.onAsk = func() {
		if before != nil {
			before()
		}
		asked()
	}
	start, possible := c.stream != isListening, c.post == nil && !c.t.NoStream
	if possible {
		c.stream = isListening
	}
	if c.cut != nil {
		c.cut()
	}
	c.mu.Unlock()
	switch {
	case !possible:
		c.asked()
	case start:
		c.run(c.keepListening)
	}
}

// asked tells who waits for it that the stream has been asked for.
func (c *httpConn) asked() {
	c.mu.Lock()
	f := c.onAsk
	c.onAsk = nil
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

// A listener is at the server's own stream.
type listener struct {
	pace    pacing
	session httpClientSession
	opened  bool // the stream was there in this session
}

// keepListening keeps the server's own stream open, in one session after the
// other.
func (c *httpConn) keepListening() {
	l := listener{pace: pacing{pause: c.t.pause}}
	left := isListening
	for left == isListening && c.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(c.ctx)
		c.mu.Lock()
		c.cut = cancel
		c.mu.Unlock()
		left = c.listenOnce(ctx, &l)
		cancel()
	}
	c.mu.Lock()
	c.stream, c.cut = left, nil
	c.mu.Unlock()
	c.asked()
}

// listenOnce reads the stream until it ends, and waits until it may be asked
// for again. ctx ends when there is another session, too. A server that has no
// stream says so.
func (c *httpConn) listenOnce(ctx context.Context, l *listener) listening {
	session, err := c.current(ctx)
	known := err == nil
	if known {
		if session != l.session {
			l.session, l.opened, l.pace.last = session, false, ""
		}
		began := time.Now()
		var opened bool
		opened, err = c.listenIn(ctx, l)
		l.opened = l.opened || opened
		l.pace.lasted(time.Since(began))
	}
	switch {
	case ctx.Err() != nil:
		return isListening
	case known && l.opened && lostSession(err, l.session):
		c.forget(l.session)
		return isListening
	case !l.opened && !mayTryAgain(err):
		c.log.Info("mcp: the server has no stream of its own", "error", err)
		return notListening
	case !mayTryAgain(err): // perhaps it does not know the last event
		l.pace.last = ""
	}
	if !l.pace.wait(ctx) && ctx.Err() == nil {
		c.log.Warn("mcp: the server's stream is lost", "error", err)
		return gaveUp
	}
	return isListening
}

// listenIn reads the stream of a session until it ends.
func (c *httpConn) listenIn(ctx context.Context, l *listener) (opened bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { c.asked() }})
	return c.events(ctx, l.session, l.pace.last, func(events *eventReader) error {
		c.asked()
		for {
			e, err := events.next()
			if err != nil {
				return err
			}
			l.pace.event(e)
			if e.isMessage() {
				c.push([]byte(e.data), nil)
			}
		}
	})
}

// mayTryAgain reports whether what failed by err may succeed later.
func mayTryAgain(err error) bool {
	var e interface{ temporary() bool }
	return !errors.As(err, &e) || e.temporary()
}

// current returns the session to send a message in: a new one if the server
// has lost the last, which whoever comes first has opened.
func (c *httpConn) current(ctx context.Context) (httpClientSession, error) {
	c.mu.Lock()
	if !c.forgot {
		defer c.mu.Unlock()
		return c.session, nil
	}
	r, first := c.renewal, c.renewal == nil
	if first {
		r = &renewal{done: make(chan struct{})}
		c.renewal = r
	}
	c.mu.Unlock()
	if first {
		c.run(func() { c.renew(r) })
	}
	select {
	case <-r.done:
		return r.session, r.err
	case <-ctx.Done():
		return httpClientSession{}, ctx.Err()
	}
}

// forget notes that the server does not know a session any more, unless
// there is a newer one.
func (c *httpConn) forget(session httpClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == session {
		c.forgot = true
		if c.cut != nil {
			c.cut()
		}
	}
}

// renew opens a session in place of one that the server has lost. Nobody's
// context ends it but the connection's: all wait for it.
func (c *httpConn) renew(r *renewal) {
	defer close(r.done)
	c.log.Warn("mcp: the server has lost the session; opening another")
	ctx, cancel := context.WithTimeout(c.ctx, sendTime)
	defer cancel()
	r.session, r.err = c.reopen(ctx)
	c.mu.Lock()
	c.renewal = nil
	renewed := c.renewed
	if r.err == nil {
		c.session, c.forgot = r.session, false
	}
	c.mu.Unlock()
	if r.err != nil {
		r.err = fmt.Errorf("mcp: the server has lost the session, and opens no other: %w", r.err)
		return
	}
	c.listen(func() {
		if renewed != nil {
			renewed()
		}
	})
}

// reopen says initialize again, without the id of the session that is lost.
func (c *httpConn) reopen(ctx context.Context) (session httpClientSession, err error) {
	c.mu.Lock()
	p := &posting{m: c.opening.m, frame: c.opening.frame, params: c.opening.params}
	session.number = c.session.number + 1
	spoken := c.spoken
	c.mu.Unlock()
	var answer *Message
	err = c.postOnce(ctx, p, httpClientSession{}, func(r *http.Response) error {
		session.id = r.Header.Get(headerSession)
		return c.responses(ctx, p, r, func(_ []byte, got *Message) { answer = got })
	})
	switch {
	case err != nil:
		return session, err
	case answer.Error != nil:
		return session, answer.Error
	case c.agreed(answer) != spoken:
		return session, errors.New("it speaks another revision now")
	}
	m := &Message{Method: notifyInitialized}
	begun := &posting{m: m, frame: appendNotification(nil, m.Method, nil), params: noParams}
	return session, c.postOnce(ctx, begun, session, nil)
}

// onRenewed has f called for every session that was opened in place of one
// that the server has lost, with all that was set in it. f must not block.
func (c *httpConn) onRenewed(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed = f
}

// Close ends what is open and the session. Notifications that are on their
// way get a moment.
func (c *httpConn) Close() error {
	c.close.Do(func() {
		c.mu.Lock()
		last := c.last
		c.mu.Unlock()
		if last != nil {
			waitFor(last, lastTime)
		}
		c.mu.Lock()
		session, version := c.session, c.version
		if c.forgot {
			session.id = ""
		}
		c.stop()
		c.mu.Unlock()
		if session.id != "" {
			ctx, cancel := context.WithTimeout(context.Background(), closeTime)
			defer cancel()
			header := make(http.Header)
			c.stamp(header, version, session)
			if r, err := c.do(ctx, http.MethodDelete, c.url, header, nil); err == nil {
				finish(r) // a server need not support it
			}
		}
		ended := make(chan struct{})
		go func() {
			c.work.Wait()
			close(ended)
		}()
		waitFor(ended, closeTime)
		if c.idle != nil {
			c.idle()
		}
	})
	return nil
}

// waitFor waits until done is closed, but no longer than d.
func waitFor(done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// pacing says when a stream may be asked for again.
type pacing struct {
	pause  func(failed int) (wait time.Duration, more bool)
	failed int           // in a row, without anything new
	retry  time.Duration // what the server said; 0 for nothing
	last   string        // id of the last event
}

// event notes what an event says of itself.
func (p *pacing) event(e event) {
	if e.retry >= 0 {
		p.retry = e.retry
	}
	if e.id != "" && e.id != p.last || e.data != "" {
		p.failed = 0
	}
	if e.hasID {
		p.last = e.id
	}
}

// lasted notes how long the stream was there: one that had nothing to say for
// long is no failure.
func (p *pacing) lasted(d time.Duration) {
	if d >= maxPause {
		p.failed = 0
	}
}

// wait waits before the next attempt; false means that there is none. What
// the server asked for is a minimum (2025-11-25 basic/transports § Sending
// Messages to the Server); without it the time doubles, within bounds and with
// some chance, so that many clients do not come at once.
func (p *pacing) wait(ctx context.Context) bool {
	d, more := p.pause(p.failed)
	if !more {
		return false
	}
	if asked := p.retry + time.Duration(mrand.Int64N(int64(p.retry/8)+1)); p.retry > 0 && (p.failed == 0 || asked > d) {
		d = asked
	}
	p.failed++
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// An event is one of a stream of server-sent events.
type event struct {
	name, id, data string
	hasID          bool          // the event has a field for its id, though it may be ""
	retry          time.Duration // -1 for none
}

// isMessage reports whether an event holds a message of the protocol's: one
// without data only says where the stream is.
func (e *event) isMessage() bool { return e.data != "" && (e.name == "" || e.name == "message") }

// An eventReader reads server-sent events by the WHATWG's grammar: lines end
// with CR, LF or both; it never waits for a byte that it can do without.
type eventReader struct {
	r     *bufio.Reader
	max   int // bytes of a line, and of the data of an event
	begun bool
	cr    bool // the last line ended with CR: an LF that follows belongs to it
	line  []byte
}

var errEventTooLarge = errors.New("mcp: the event is too large")

func newEventReader(r io.Reader, max int) *eventReader {
	return &eventReader{r: bufio.NewReader(r), max: max}
}

// next returns the next event. An event without data, too: its id or retry
// may say something. What is cut off at the end is none.
func (r *eventReader) next() (event, error) {
	e := event{retry: -1}
	var data []byte
	lines, some := 0, false
	for {
		line, err := r.readLine()
		if err != nil {
			return e, err
		}
		if len(line) == 0 {
			if !some { // only comments, which may go on for ever
				continue
			}
			e.data = string(data)
			return e, nil
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if lines++; lines > 1 {
				data = append(data, '\n')
			}
			if len(data)+len(value) > r.max {
				return e, errEventTooLarge
			}
			data = append(data, value...)
		case "event":
			e.name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) >= 0 {
				continue
			}
			e.id, e.hasID = string(value), true
		case "retry":
			ms, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil {
				continue
			}
			e.retry = time.Duration(ms) * time.Millisecond
		default:
			continue
		}
		some = true
	}
}

// readLine returns the next line without its end.
func (r *eventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.r.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := r.r.Peek(r.r.Buffered())
		if r.cr {
			if r.cr = false; chunk[0] == '\n' {
				r.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		n := end + 1
		if end < 0 {
			end, n = len(chunk), len(chunk)
		}
		if len(r.line)+end > r.max+maxFieldName {
			return nil, errEventTooLarge
		}
		r.line = append(r.line, chunk[:end]...)
		ended := end < n
		r.cr = ended && chunk[end] == '\r'
		r.r.Discard(n)
		if ended {
			if !r.begun {
				r.begun = true
				r.line = bytes.TrimPrefix(r.line, []byte("\ufeff"))
			}
			return r.line, nil
		}
	}
}

// maxFieldName is what a line may have besides its value.
const maxFieldName = 16
