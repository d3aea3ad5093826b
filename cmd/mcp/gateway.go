package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpkit/mcp"
)

// A gateway is an HTTP endpoint for a server that runs as a child process.
// Each session of a revision before 2026-07-28 has a child of its own, to
// which its messages go as they are. Requests of 2026-07-28 share one child;
// since two clients may use the same ids, ids and progress tokens are replaced
// on the way in and put back on the way out.
//
// What does not pass: batches; taking up a stream again that broke
// (Last-Event-ID); log messages of 2026-07-28 while more than one request
// that wants them runs, since on stdio they do not say to whom they belong.
type gateway struct {
	start func(context.Context) (mcp.Conn, error)
	log   io.Writer
	probe time.Duration // for an old server to show that it is one

	mu       sync.Mutex
	sessions map[string]*process // before 2026-07-28
	opening  int                 // sessions that are being opened
	shared   *process            // of 2026-07-28; nil while there is none
	ended    bool
}

const (
	maxChildren  = 64
	maxBody      = 4 << 20
	maxWaiting   = 256 // messages for a client that does not read, or has no stream open
	sessionIdle  = 30 * time.Minute
	probeTime    = 5 * time.Second
	silence      = 15 * time.Second
	eventTime    = 10 * time.Second // for one write
	maxExchanges = 1000             // of a child
)

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		g.post(w, r)
	case http.MethodGet, http.MethodDelete:
		if r.Header.Get("Mcp-Protocol-Version") >= mcp.Version20260728 {
			w.Header().Set("Allow", "POST")
			refuse(w, http.StatusMethodNotAllowed, nil, mcp.CodeInvalidRequest, "method not allowed")
			return
		}
		c := g.session(w, r, nil)
		switch {
		case c == nil:
		case r.Method == http.MethodGet:
			c.stream(w, r)
		default:
			c.leave()
			c.conn.Close()
			w.WriteHeader(http.StatusNoContent)
		}
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, nil, mcp.CodeInvalidRequest, "method not allowed")
	}
}

func refuse(w http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	writeAnswer(w, status, failure(id, code, text))
}

func writeAnswer(w http.ResponseWriter, status int, frame []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(frame)
}

// post takes one message.
func (g *gateway) post(w http.ResponseWriter, r *http.Request) {
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, nil, mcp.CodeInvalidRequest, "the Content-Type must be application/json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var line bytes.Buffer // on stdio a message is a line
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, nil, mcp.CodeInvalidRequest, "the body is too large")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, nil, mcp.CodeParseError, "the body ends early")
		return
	case json.Compact(&line, body) != nil:
		refuse(w, http.StatusBadRequest, nil, mcp.CodeParseError, "the body is not JSON")
		return
	}
	m := parseMessage(line.Bytes())
	if m == nil {
		refuse(w, http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "the body must be one message")
		return
	}
	header := r.Header.Get("Mcp-Protocol-Version")
	said := m.in("params").in("_meta").text(metaVersion)
	switch {
	case m.isRequest() && said >= mcp.Version20260728, header >= mcp.Version20260728:
		g.postModern(w, r, m, header, said)
	case m.isRequest() && m.text("method") == "initialize":
		g.open(w, r, m, line.Bytes())
	default:
		if c := g.session(w, r, m["id"]); c != nil {
			defer c.leave()
			c.pass(w, r, m, line.Bytes())
		}
	}
}

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
)

// launch starts a child, or refuses the request.
func (g *gateway) launch(w http.ResponseWriter, r *http.Request, id json.RawMessage, shared bool) *process {
	conn, err := g.start(r.Context())
	if err != nil {
		fmt.Fprintln(g.log, err)
		refuse(w, http.StatusBadGateway, id, mcp.CodeInternalError, "the server cannot be started")
		return nil
	}
	c := &process{
		conn: conn, probe: g.probe, shared: shared, exchanges: make(map[string]*exchange),
		stray: make(chan []byte, maxWaiting), ended: make(chan struct{}),
	}
	go func() {
		err := c.read()
		g.forget(c) // before anyone hears of it and comes again
		close(c.ended)
		if !errors.Is(err, io.EOF) && !errors.Is(err, mcp.ErrClosed) {
			fmt.Fprintln(g.log, err)
		}
		conn.Close()
	}()
	return c
}

// forget lets go of a child that has ended.
func (g *gateway) forget(c *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, c.id)
	if g.shared == c {
		g.shared = nil
	}
}

// open opens a session.
func (g *gateway) open(w http.ResponseWriter, r *http.Request, m message, line []byte) {
	g.mu.Lock()
	full := g.ended || len(g.sessions)+g.opening >= maxChildren
	if !full {
		g.opening++
	}
	g.mu.Unlock()
	if full {
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusServiceUnavailable, m["id"], mcp.CodeInternalError, "there are too many sessions")
		return
	}
	c := g.launch(w, r, m["id"], false)
	g.mu.Lock()
	g.opening--
	ended := g.ended
	if c != nil && !ended {
		c.id = rand.Text()
		g.sessions[c.id] = c
	}
	g.mu.Unlock()
	switch {
	case c == nil:
		return
	case ended:
		c.conn.Close()
		refuse(w, http.StatusServiceUnavailable, m["id"], mcp.CodeInternalError, "the bridge ends")
		return
	}
	w.Header().Set("Mcp-Session-Id", c.id)
	c.enter()
	defer c.leave()
	if !c.pass(w, r, m, line) { // the server does not want it
		c.conn.Close()
	}
}

// session finds the session of a request, marked as used until leave, or
// refuses the request.
func (g *gateway) session(w http.ResponseWriter, r *http.Request, id json.RawMessage) *process {
	name := r.Header.Get("Mcp-Session-Id")
	if name == "" {
		refuse(w, http.StatusBadRequest, id, mcp.CodeInvalidRequest, "the header Mcp-Session-Id is missing: initialize opens a session")
		return nil
	}
	g.mu.Lock()
	c := g.sessions[name]
	g.mu.Unlock()
	if c == nil {
		refuse(w, http.StatusNotFound, id, mcp.CodeInvalidRequest, "no such session: initialize opens one")
		return nil
	}
	c.enter()
	return c
}

// postModern passes a message of 2026-07-28 on to the child that all share.
func (g *gateway) postModern(w http.ResponseWriter, r *http.Request, m message, header, said string) {
	if !m.isRequest() { // there is none that a server needs
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if wrong := mismatch(r.Header, m, header, said); wrong != "" {
		refuse(w, http.StatusBadRequest, m["id"], mcp.CodeHeaderMismatch, wrong)
		return
	}
	g.mu.Lock()
	c := g.shared
	if c == nil && !g.ended {
		if c = g.launch(w, r, m["id"], true); c != nil {
			g.shared = c
		}
	} else if g.ended {
		refuse(w, http.StatusServiceUnavailable, m["id"], mcp.CodeInternalError, "the bridge ends")
	}
	g.mu.Unlock()
	if c != nil {
		c.pass(w, r, m, nil)
	}
}

// mismatch says what is wrong when headers do not say what the body says
// (2026-07-28 basic/transports/streamable-http § Server Validation).
func mismatch(h http.Header, m message, header, said string) string {
	method, params := m.text("method"), m.in("params")
	var name string
	switch method {
	case "tools/call", "prompts/get":
		name = params.text("name")
	case "resources/read":
		name = params.text("uri")
	}
	got := h.Get("Mcp-Name")
	if encoded, ok := strings.CutPrefix(got, "=?base64?"); ok {
		if text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?=")); err == nil {
			got = string(text)
		}
	}
	switch {
	case header != said:
		return "the header MCP-Protocol-Version does not match the body"
	case h.Get("Mcp-Method") != method:
		return "the header Mcp-Method does not match the body"
	case name != "" && got != name:
		return "the header Mcp-Name does not match the body"
	}
	return ""
}

// end ends all children and waits for them.
func (g *gateway) end() {
	g.mu.Lock()
	g.ended = true
	var all []*process
	for _, c := range g.sessions {
		all = append(all, c)
	}
	if g.shared != nil {
		all = append(all, g.shared)
	}
	g.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range all {
		closing.Add(1)
		go func() {
			defer closing.Done()
			c.conn.Close()
		}()
	}
	closing.Wait()
}

// A process is a child that serves one session, or all requests of
// 2026-07-28.
type process struct {
	conn   mcp.Conn
	id     string        // of the session
	probe  time.Duration // see gateway
	shared bool
	stray  chan []byte   // what belongs to no request, for a GET
	ended  chan struct{} // closed when the process has ended

	writing   sync.Mutex
	mu        sync.Mutex
	users     int                  // requests of the session
	idle      *time.Timer          // ends a session that is not used
	numbers   int                  // of requests, when they are shared
	open      []*exchange          // newest last
	exchanges map[string]*exchange // by the id that the child knows
}

func (c *process) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	if c.idle != nil {
		c.idle.Stop()
	}
}

func (c *process) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users == 0 {
		c.idle = time.AfterFunc(sessionIdle, func() { c.conn.Close() })
	}
}

func (c *process) write(frame []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.conn.Write(context.Background(), frame)
}

// An exchange is a request on its way, and what comes back for it.
type exchange struct {
	method       string
	id, token    json.RawMessage // as the client says them
	key, tokenAs string          // as the child knows them
	logs         bool            // it wants log messages
	back         chan returned
	slow         chan struct{} // closed when the client does not read
}

type returned struct {
	frame []byte
	last  bool // it is the response
	code  int  // of an error
}

// pass passes a message on and answers the POST. It reports whether that went
// well, as far as the protocol is concerned.
func (c *process) pass(w http.ResponseWriter, r *http.Request, m message, line []byte) bool {
	if !m.isRequest() {
		if c.write(line) != nil {
			refuse(w, http.StatusBadGateway, nil, mcp.CodeInternalError, "the server has ended")
			return false
		}
		w.WriteHeader(http.StatusAccepted)
		return true
	}
	e := &exchange{method: m.text("method"), id: m["id"], back: make(chan returned, maxWaiting), slow: make(chan struct{})}
	meta := m.in("params").in("_meta")
	e.token, e.logs = meta["progressToken"], meta[metaLogLevel] != nil
	c.mu.Lock()
	e.key, e.tokenAs = string(e.id), string(e.token)
	if c.shared {
		c.numbers++
		e.key = strconv.Itoa(c.numbers)
		if line = m.with(json.RawMessage(e.key), "id"); e.token != nil {
			e.tokenAs = e.key
			line = parseMessage(line).with(json.RawMessage(e.key), "params", "_meta", "progressToken")
		}
	}
	_, twice := c.exchanges[e.key]
	full := len(c.exchanges) >= maxExchanges
	if !twice && !full {
		c.exchanges[e.key] = e
		c.open = append(c.open, e)
	}
	c.mu.Unlock()
	switch {
	case twice:
		refuse(w, http.StatusBadRequest, e.id, mcp.CodeInvalidRequest, "a request with this id is running")
		return true
	case full:
		refuse(w, http.StatusServiceUnavailable, e.id, mcp.CodeInternalError, "too many requests are running")
		return true
	}
	defer c.drop(e)
	if err := c.write(line); err != nil {
		refuse(w, http.StatusBadGateway, e.id, mcp.CodeInternalError, "the server has ended")
		return false
	}
	return c.answer(w, r, e)
}

func (c *process) drop(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.exchanges, e.key)
	c.open = slices.DeleteFunc(c.open, func(other *exchange) bool { return other == e })
}

// with returns a message with another value at the end of a path whose other
// parts are there.
func (m message) with(value json.RawMessage, path ...string) json.RawMessage {
	if len(path) > 1 {
		value = m.in(path[0]).with(value, path[1:]...)
	}
	changed := message{path[0]: value}
	for name, other := range m {
		if name != path[0] {
			changed[name] = other
		}
	}
	frame, err := json.Marshal(changed)
	if err != nil {
		panic(err) // cannot be: all of it was JSON
	}
	return frame
}

// answer writes what comes back for a request: one JSON object if that is
// all, a stream otherwise.
func (c *process) answer(w http.ResponseWriter, r *http.Request, e *exchange) bool {
	out := &events{w: w, control: http.NewResponseController(w), modern: c.shared}
	tick := time.NewTicker(silence)
	defer tick.Stop()
	var probe <-chan time.Time
	if e.method == "server/discover" {
		probe = time.After(c.probe)
	}
	for {
		var got returned
		select {
		case got = <-e.back:
		case <-c.ended:
			select {
			case got = <-e.back: // it said so before it ended
			default:
				return out.last(e, e.gone(c.shared))
			}
		case <-probe: // one that does not know what it is asked may say nothing
			return out.last(e, e.gone(true))
		case <-tick.C:
			got.frame = nil
		case <-e.slow:
			return true
		case <-r.Context().Done():
			c.cancel(e)
			return true
		}
		switch {
		case got.last:
			return out.last(e, got)
		case got.frame != nil && out.event(got.frame) != nil, got.frame == nil && out.comment() != nil:
			c.cancel(e)
			return true
		}
	}
}

// gone is what a client gets whose server has ended, or is too old to answer
// a question of 2026-07-28.
func (e *exchange) gone(modern bool) returned {
	code, text := mcp.CodeInternalError, "the server has ended"
	if modern && e.method == "server/discover" {
		code, text = mcp.CodeMethodNotFound, "method not found: server/discover"
	}
	return returned{failure(e.id, code, text), true, code}
}

// cancel tells the child that nobody waits any more. Before 2026-07-28 the end
// of a connection does not say that.
func (c *process) cancel(e *exchange) {
	if c.shared {
		c.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"the client has gone"}}`, e.key))
	}
}

// stream holds a GET open for what belongs to no request.
func (c *process) stream(w http.ResponseWriter, r *http.Request) {
	defer c.leave()
	out := &events{w: w, control: http.NewResponseController(w)}
	tick := time.NewTicker(silence)
	defer tick.Stop()
	for err := out.comment(); err == nil; {
		select {
		case frame := <-c.stray:
			err = out.event(frame)
		case <-tick.C:
			err = out.comment()
		case <-c.ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// read routes what the child says until it ends, and returns why it did.
func (c *process) read() error {
	for {
		frame, err := c.conn.Read(context.Background())
		if bad := (*mcp.Error)(nil); errors.As(err, &bad) {
			continue // one frame that makes no sense
		}
		if err != nil {
			return err
		}
		batch := []json.RawMessage{frame}
		if frame[0] == '[' && json.Unmarshal(frame, &batch) != nil {
			continue
		}
		for _, frame := range batch {
			if m := parseMessage(frame); m != nil {
				c.route(m, frame)
			}
		}
	}
}

// route gives what the child says to who it is for.
func (c *process) route(m message, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, last := c.exchanges[string(m["id"])], m["method"] == nil
	if !last {
		e = c.about(m)
	}
	switch {
	case e == nil && last: // nobody waits for it any more
		return
	case e == nil:
		for !c.shared {
			select {
			case c.stray <- frame:
				return
			default:
				<-c.stray // the oldest
			}
		}
		return
	case c.shared:
		frame = e.restore(m, last)
	}
	got := returned{frame: frame, last: last}
	if failed := m.in("error"); failed != nil {
		got.code, _ = strconv.Atoi(string(failed["code"])) // 0 for an odd one
	}
	select {
	case e.back <- got:
	default:
		delete(c.exchanges, e.key)
		close(e.slow)
	}
}

// about finds the request that a notification or question is about. Under
// c.mu.
func (c *process) about(m message) *exchange {
	params := m.in("params")
	if id := params.in("_meta")[metaSubscription]; id != nil {
		return c.exchanges[string(id)]
	}
	token, logs := params["progressToken"], m.text("method") == "notifications/message"
	var found *exchange
	for _, e := range c.open {
		switch {
		case c.exchanges[e.key] == nil: // answered, or too slow
		case token != nil:
			if string(token) == e.tokenAs {
				return e
			}
		case !c.shared:
			found = e // the newest: it does not say which
		case logs && e.logs && found != nil:
			return nil // whose is it?
		case logs && e.logs:
			found = e
		}
	}
	return found
}

// restore puts back what was replaced when the request went in.
func (e *exchange) restore(m message, last bool) []byte {
	path := "params"
	if last {
		m = parseMessage(m.with(e.id, "id"))
		path = "result"
	}
	if m.in(path).in("_meta")[metaSubscription] != nil {
		m = parseMessage(m.with(e.id, path, "_meta", metaSubscription))
	}
	if !last && m.in("params")["progressToken"] != nil {
		return m.with(e.token, "params", "progressToken")
	}
	return m.with(m["jsonrpc"], "jsonrpc")
}

// events writes a response as a stream of events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
	modern  bool // errors have a status
}

func (o *events) write(text []byte) error {
	if !o.begun {
		o.begun = true
		header := o.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-cache, no-transform")
		header.Set("X-Accel-Buffering", "no")
	}
	o.control.SetWriteDeadline(time.Now().Add(eventTime))
	defer o.control.SetWriteDeadline(time.Time{})
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	return o.control.Flush()
}

func (o *events) event(frame []byte) error { return o.write(fmt.Appendf(nil, "data: %s\n\n", frame)) }
func (o *events) comment() error           { return o.write([]byte(": still here\n\n")) }

// last writes the response and reports whether it is a result.
func (o *events) last(e *exchange, got returned) bool {
	if o.begun {
		o.event(got.frame)
		return got.code == 0
	}
	if e.method == "initialize" && got.code != 0 {
		o.w.Header().Del("Mcp-Session-Id")
	}
	status := http.StatusOK
	if o.modern {
		switch got.code {
		case mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingClientCapability, mcp.CodeUnsupportedProtocolVersion:
			status = http.StatusBadRequest
		case mcp.CodeMethodNotFound:
			status = http.StatusNotFound
		}
	}
	writeAnswer(o.w, status, got.frame)
	return got.code == 0
}

// guarded refuses what pages of other origins send, and on a loopback address
// what was meant for another host (2026-07-28 basic/transports/
// streamable-http § Security).
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		origin, foreign := r.Header["Origin"], false
		for _, o := range origin {
			u, err := url.Parse(o)
			foreign = foreign || err != nil || u.Host != r.Host
		}
		if foreign || local != nil && isLoopback(local.String()) && !isLoopback(r.Host) {
			refuse(w, http.StatusForbidden, nil, mcp.CodeInvalidRequest, "pages of other origins are not served")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
