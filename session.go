package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// This file is one side of a conversation, server or client alike. A session
// is passive: it is given frames and told where answers go, so that a stream
// connection, an HTTP request and a test can all drive it.

// A Transport makes connections. [Server.Run] and [Client.Connect] call
// Connect once; a client calls it again when the peer died of a question that
// it did not know (2026-07-28 basic/transports/stdio § Backward
// Compatibility). A transport that cannot connect twice returns an error then.
//
// A transport of your own carries UTF-8 JSON-RPC messages unchanged and in
// order, one frame each.
type Transport interface {
	// Connect opens one connection. ctx bounds the opening only.
	Connect(ctx context.Context) (Conn, error)
}

// A Conn carries frames: the JSON of one message, or of a batch at
// 2025-03-26, on one line and without a line end.
type Conn interface {
	// Read returns the next frame, which the caller then owns. It is called
	// by one goroutine at a time. An [*Error] means that one frame could not
	// be read: the peer is told and reading goes on. A [*CallError] means
	// that one call of ours has failed. [io.EOF] means that the
	// peer ended the conversation. Any other error says why the connection
	// is dead.
	Read(ctx context.Context) ([]byte, error)
	// Write sends one frame. It may append to the frame's spare capacity but
	// must not keep it. It is called by one goroutine at a time, while Read
	// and Close may run.
	Write(ctx context.Context, frame []byte) error
	// Close ends the connection and unblocks Read and Write. It is bounded
	// in time and may be called more than once.
	Close() error
}

// A CallError is why one call failed without an answer of the peer, as a
// [Conn] returns it from Read when the connection itself goes on.
type CallError struct {
	ID  ID
	Err error
}

// Error says why.
func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *CallError) Unwrap() error { return e.Err }

// ErrClosed is the error of every call on a session that has ended.
var ErrClosed = errors.New("mcp: session closed")

// A doingError is an error with what failed by it.
type doingError struct {
	doing string
	err   error
}

// doing returns err with what failed by it. The text has the package's name
// once, however often an error is wrapped.
func doing(what string, err error) error { return &doingError{what, err} }

func (e *doingError) Error() string {
	return "mcp: " + e.doing + ": " + strings.TrimPrefix(e.err.Error(), "mcp: ")
}

func (e *doingError) Unwrap() error { return e.err }

// A lostError is ErrClosed with the reason.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return doing("session closed", e.cause).Error()
}

func (e *lostError) Unwrap() []error { return []error{ErrClosed, e.cause} }

// A Handler answers one request: with a result that encodes to a JSON object
// (nil is the empty object), or with an error. An [*Error] reaches the peer
// as it is, any other error as [CodeInternalError] without its text. For a
// notification what it returns is ignored.
type Handler func(ctx context.Context, req *Request) (result any, err error)

// Middleware wraps a Handler; see [Server.Use].
type Middleware func(Handler) Handler

// A Request is one incoming message and the way back to who sent it: the
// same type for every handler, at every revision and on every transport.
// It is valid until the handler returns.
type Request struct {
	Method string
	// ID is zero for a notification.
	ID ID
	// Params is the message's params as they came, nil when absent.
	// Middleware may set another value before it calls the next handler, but
	// must not change these bytes.
	Params json.RawMessage
	// Name is what the request is about: the name of the tool or prompt, or
	// the URI of the resource. Empty for other methods.
	Name string
	// Arguments are the arguments of tools/call or prompts/get as they came,
	// nil when there are none; for the handler of a tool they are a JSON
	// object that fits the tool's schema, with its defaults filled in.
	Arguments json.RawMessage
	// Vars holds the arguments of a prompt, or what the variables of a
	// resource template stand for; only its handler sees them.
	Vars map[string]string
	// Header holds the HTTP headers that came with the message; nil on other
	// transports. It has the underlying type of http.Header.
	Header map[string][]string
	// Principal names who sent the message, when authorization established
	// that; "" otherwise.
	Principal string
	// Outgoing says that this side sends the message: only the middleware of
	// a [Client] sees such requests.
	Outgoing bool

	bad     *Error // what is wrong with the params already
	session *session
	next    Handler         // what is inside the middleware; client side only
	out     stream          // the way out for all that belongs to this request
	values  context.Context // what the handler's context knows, beside what the session's does; nil for nothing
	rev     *revision       // the revision it is served at
	params  *paramsView     // not nil
	client  *clientFacts    // what is known of the client; server side only
	asks    bool            // a handler may ask the client; server side only
	rounds  *rounds         // questions asked and answered, under mu; nil for none yet
	// mirrored, if not nil, compares the arguments of a tool with the headers
	// that repeat them.
	mirrored func(params []headerParam, arguments []byte) *Error
	// answered, if not nil, runs when all of the request has been sent: its
	// answer, unless it was cancelled.
	answered func(cancelled bool)

	mu     sync.Mutex
	ended  bool                    // answered or cancelled: nothing more may leave
	over   bool                    // and the handler's context is done
	ctx    context.Context         // what stands behind it; nil until it is needed
	stop   context.CancelCauseFunc // ends ctx
	report *report                 // nil before the first
}

// A requestContext is a Request as the context of its handler: it ends with
// the request and with the session, and has the values of where the request
// came in. Most handlers never ask whether it is done, and for them there is
// nothing to set up.
type requestContext Request

func (r *requestContext) Deadline() (time.Time, bool) { return r.session.ctx.Deadline() }

func (r *requestContext) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live().Done()
}

func (r *requestContext) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ctx != nil:
		return r.ctx.Err()
	case r.over:
		return context.Canceled
	}
	return r.session.ctx.Err()
}

// Value knows of the context behind, too, so that the package context finds
// that one when it derives another from this.
func (r *requestContext) Value(key any) any {
	r.mu.Lock()
	ctx := r.ctx
	r.mu.Unlock()
	if ctx != nil {
		return ctx.Value(key)
	}
	return r.base().Value(key)
}

// live returns the context behind. Under r.mu.
func (r *requestContext) live() context.Context {
	if r.ctx == nil {
		r.ctx, r.stop = context.WithCancelCause(r.base())
		if r.over {
			r.stop(nil)
		}
	}
	return r.ctx
}

// base returns what the context behind is derived from.
func (r *requestContext) base() context.Context {
	if r.values == nil {
		return r.session.ctx
	}
	return withValues{r.session.ctx, r.values}
}

// endContext ends the handler's context. A cause is there for who asks for it
// later; without one nobody will.
func (r *Request) endContext(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cause != nil {
		(*requestContext)(r).live()
	}
	if r.over = true; r.stop != nil {
		r.stop(cause)
	}
}

// report is how far a request says it has come, under its mu.
type report struct {
	last  float64     // the greatest value so far
	spent time.Time   // progressEvery for each notice sent, from the first on
	held  []byte      // the newest notice, which came too soon after others
	timer *time.Timer // sends held; not nil while there is one
}

// clientFacts is what a client said of itself.
type clientFacts struct {
	info Implementation
	caps ClientCapabilities
}

// rounds is what a request knows of the questions asked on its behalf.
type rounds struct {
	answers InputResponses
	state   json.RawMessage
	count   int
}

// Version returns the revision that the request is served at, for example
// "2026-07-28".
func (r *Request) Version() string { return r.rev.version }

// Meta returns the _meta of the request; nil when it has none. The map is
// made anew on each call. A traceparent, tracestate or baggage that is
// malformed is left out, so that nobody passes it on
// (2026-07-28 basic § _meta).
func (r *Request) Meta() Meta {
	var m Meta
	if r.params.meta != nil {
		decodeAt(r.params.meta, &m, rev20260728, true) // checked when it arrived
		m.dropMalformedTrace()
	}
	return m
}

// Progress tells the peer how far the request has come, if it asked for that,
// and does nothing otherwise. A value that is not greater than the one before
// is left out, as is anything after the request ended. When notices come in a
// burst, all but the newest of them may be left out, too; that one leaves a
// few milliseconds later, or before the answer
// (2026-07-28 basic/patterns/progress).
func (r *Request) Progress(ctx context.Context, p ProgressParams) error {
	if r.params.progressToken == nil {
		return nil
	}
	p.ProgressToken, _ = parseID(r.params.progressToken)
	frame, err := encodeNotification(notifyProgress, &p, r.rev)
	if err != nil {
		return err
	}
	if err := r.out.room(ctx); err != nil {
		return doing(notifyProgress, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended || r.report != nil && p.Progress <= r.report.last:
		return nil
	case r.report == nil:
		r.report = new(report)
	}
	r.report.last = p.Progress
	wait := r.report.due()
	if r.report.held == nil && wait <= 0 {
		return r.putProgress(frame)
	}
	if r.report.held = frame; r.report.timer == nil {
		r.report.timer = time.AfterFunc(wait, r.releaseProgress)
	}
	return nil
}

// due returns how long the next notice must wait.
func (p *report) due() time.Duration {
	return time.Until(p.spent.Add(-(progressBurst - 1) * progressEvery))
}

// releaseProgress sends the notice that was held.
func (r *Request) releaseProgress() {
	if r.out.room(r.session.ctx) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.timer = nil; !r.ended {
		r.flushProgress()
	}
}

// flushProgress sends the notice that was held, if any. Under r.mu.
func (r *Request) flushProgress() {
	if r.report == nil {
		return
	}
	if r.report.timer != nil {
		r.report.timer.Stop()
		r.report.timer = nil
	}
	if frame := r.report.held; frame != nil {
		r.report.held = nil
		r.putProgress(frame) // an error would be that of the answer
	}
}

// putProgress sends a notice. Under r.mu.
func (r *Request) putProgress(frame []byte) error {
	if now := time.Now(); r.report.spent.Before(now) {
		r.report.spent = now
	}
	r.report.spent = r.report.spent.Add(progressEvery)
	return r.out.put(frame)
}

// notify sends a notification that belongs to the request, unless the request
// has ended.
func (r *Request) notify(ctx context.Context, method string, params any) error {
	frame, err := encodeNotification(method, params, r.rev)
	if err != nil {
		return err
	}
	// Nobody waits under the lock, which whoever cancels needs.
	if err := r.out.room(ctx); err != nil {
		return doing(method, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	return r.out.put(frame)
}

// end marks the request as answered or cancelled and reports whether it was
// neither before.
func (r *Request) end() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	if r.ended = true; r.report != nil && r.report.timer != nil {
		r.report.timer.Stop()
	}
	return true
}

// finish is end for the handler, before the answer is sent: the newest
// progress leaves first.
func (r *Request) finish() bool {
	r.mu.Lock()
	if !r.ended {
		r.flushProgress()
	}
	r.mu.Unlock()
	return r.end()
}

// cancelledByPeer is the cause of a handler's context when the peer cancelled
// the request; see [context.Cause].
type cancelledByPeer struct{ reason string }

func (e *cancelledByPeer) Error() string {
	if e.reason == "" {
		return "mcp: cancelled by the peer"
	}
	return "mcp: cancelled by the peer: " + e.reason
}

func (e *cancelledByPeer) Is(target error) bool { return target == context.Canceled }

// paramsView holds the members of a request's params that more than one
// method has, each as raw JSON, nil when absent. One scan finds them all.
type paramsView struct {
	of []byte // the params

	name, uri, arguments, inputResponses, requestState, meta []byte

	// of _meta
	progressToken, version, capabilities, info, logLevel []byte
}

var noParams = new(paramsView)

// isOf reports whether v was made of these very bytes.
func (v *paramsView) isOf(params []byte) bool {
	return len(v.of) == len(params) && (len(params) == 0 || &v.of[0] == &params[0])
}

// scanParams finds the members of params. Absent params are as good as `{}`;
// anything but an object is refused, and so is a member given twice.
func scanParams(params []byte) (v *paramsView, bad *Error) {
	if params == nil {
		return noParams, nil
	}
	v = &paramsView{of: params}
	if bad = scanMembers(params, "params", func(key []byte) *[]byte {
		switch string(key) {
		case "name":
			return &v.name
		case "uri":
			return &v.uri
		case "arguments":
			return &v.arguments
		case "inputResponses":
			return &v.inputResponses
		case "requestState":
			return &v.requestState
		case "_meta":
			return &v.meta
		}
		return nil
	}); bad != nil || v.meta == nil {
		return v, bad
	}
	bad = scanMembers(v.meta, "params._meta", func(key []byte) *[]byte {
		switch string(key) {
		case metaProgressToken:
			return &v.progressToken
		case metaProtocolVersion:
			return &v.version
		case metaClientCapabilities:
			return &v.capabilities
		case metaClientInfo:
			return &v.info
		case metaLogLevel:
			return &v.logLevel
		}
		return nil
	})
	if bad == nil && v.progressToken != nil {
		if _, err := parseID(v.progressToken); err != nil {
			bad = Errorf(CodeInvalidParams, "params._meta.progressToken must be a string or an integer")
		}
	}
	return v, bad
}

// scanMembers walks over an object and keeps the members that want returns a
// place for.
func scanMembers(object []byte, path string, want func(key []byte) *[]byte) *Error {
	s := scanner{data: object}
	if s.peek() != '{' {
		return Errorf(CodeInvalidParams, "%s must be an object", path)
	}
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		key := s.key()
		dst := want(key)
		if dst != nil && *dst != nil {
			return Errorf(CodeInvalidParams, "%s.%s is given twice", path, key)
		}
		if v := s.skip(); dst != nil {
			*dst = v
		}
	}
	if s.err != nil { // of a handler or middleware of ours
		return Errorf(CodeInvalidParams, "%s: %v", path, s.err)
	}
	return nil
}

// A stream is the way out of one side of a session. Every connection has one;
// a request over HTTP has its own.
type stream interface {
	// room waits, within ctx, while the peer is far behind.
	room(ctx context.Context) error
	// put queues a frame, without waiting for the peer.
	put(frame []byte) error
	// answer sends the last frame of a request; nil when a cancelled request
	// gets none. It waits when the peer is far behind. The frame is the
	// caller's again when it returns.
	// code is that of an error response, 0 otherwise.
	answer(frame []byte, code int)
}

// send queues a frame. It waits, within ctx, only when the peer is far behind.
func send(ctx context.Context, out stream, frame []byte) error {
	if err := out.room(ctx); err != nil {
		return err
	}
	return out.put(frame)
}

// A side is what a session does with the messages it is given: the server's
// or the client's part.
type side interface {
	// admit resolves the revision of a request, or refuses it. It must not
	// block or run user code.
	admit(req *Request) *Error
	// inline reports whether the request must be finished before the next
	// message is looked at.
	inline(req *Request) bool
	// handle runs the user's code for a request or notification.
	handle(ctx context.Context, req *Request) (any, error)
	// appendResult encodes what handle returned.
	appendResult(dst []byte, req *Request, result any) ([]byte, error)
	// mayAnswer reports whether this side answers messages that are no
	// requests, with an error.
	mayAnswer() bool
	// drain is called when no more messages will come, so that what runs
	// without end can end.
	drain()
	// ended is called once, when the session is over.
	ended()
}

// Ceilings of a session.
const (
	maxRunning  = 4096     // requests being served at a time
	maxNotes    = 4096     // notifications waiting for their callback
	maxBacklog  = 16 << 20 // bytes waiting to be written
	drainTime   = 5 * time.Second
	flushTime   = 2 * time.Second
	cancelTime  = 50 * time.Millisecond  // to tell a peer that we gave up
	unheardTime = 500 * time.Millisecond // for the end of the input, when the output has broken
	noteTime    = time.Second            // for the callbacks of what came before the end
	settleTime  = 100 * time.Millisecond
	cleanTime   = 5 * time.Second // for all that OnClose registered
	maxSilent   = 3               // periods without a sign of life before the peer is lost
	maxRefused  = 64              // answers to members of a batch that are no messages
	maxProgress = 256             // progress notices waiting for their callback, a call

	progressBurst = 16 // notices of a request that may leave at once
	progressEvery = 10 * time.Millisecond
)

// A session is one side of a conversation.
type session struct {
	side   side
	log    *slog.Logger
	ctx    context.Context // ends with the session
	stop   context.CancelCauseFunc
	out    stream      // for what belongs to no request; nil if there is no way
	conn   *connStream // nil over HTTP
	reader *reader     // nil over HTTP

	mu      sync.Mutex
	lastID  int64
	calls   map[ID]*call    // our requests that wait for an answer
	running map[ID]*Request // the peer's requests being served
	served  time.Time       // when the last of them ended
	busy    int             // requests whose answer has not been handed over
	idle    chan struct{}   // closed when busy is 0, if someone waits
	batches bool            // the negotiated revision has batches
	cause   error           // why the session ended; nil when we closed it
	deaf    bool            // the peer says no more: no answer can come
	closed  bool
	done    latch // open when the session is over

	notes     []note // what waits for its callback
	noteBytes int
	noted     int64         // how many there have been
	told      int64         // how many are over
	noting    bool          // a goroutine works on notes
	mute      bool          // the rest of them are dropped
	toldOne   chan struct{} // closed when told grows, if someone waits
	slow      int64         // the note that a call has waited for in vain

	stray    func(m *Message, err error) // the option of both sides
	cleanups []func()                    // OnClose
	over     bool                        // what OnClose registers now runs at once
	cleaned  latch                       // open when they have run or been given up

	heard  atomic.Int64 // messages since the pinger looked last
	pinger *pinger      // nil without keepalive
}

// A note waits for the user's callback: a notification, or a message that
// nobody waits for.
type note struct {
	req *Request
	m   *Message // of a stray message, as far as it could be read
	err error    // what is wrong with it
}

func (n *note) size() int {
	switch {
	case n.req != nil:
		return len(n.req.Params)
	case n.m != nil:
		return len(n.m.Params) + len(n.m.Result)
	}
	return 0
}

// A latch opens once and can be waited for. Its zero value is shut.
type latch struct {
	mu     sync.Mutex
	passed bool
	c      chan struct{} // nil before someone waits
}

// open lets all through who wait, now and from now on.
func (g *latch) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.passed && g.c != nil {
		close(g.c)
	}
	g.passed = true
}

// wait returns a channel that is closed when the latch opens.
func (g *latch) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.c == nil {
		g.c = make(chan struct{})
		if g.passed {
			close(g.c)
		}
	}
	return g.c
}

func newSession(ctx context.Context, side side, log *slog.Logger) *session {
	s := new(session)
	s.init(ctx, side, log)
	return s
}

func (s *session) init(ctx context.Context, side side, log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s.side, s.log = side, log
	s.ctx, s.stop = context.WithCancelCause(ctx)
}

// start serves a connection until it ends. The goroutine that reads is the
// session's only one while nothing happens.
func (s *session) start(conn Conn) {
	s.conn = &connStream{conn: conn, session: s}
	s.conn.lines, _ = conn.(lineConn)
	s.out = s.conn
	s.reader = &reader{session: s, conn: conn}
	go s.reader.read()
}

// A lineConn is a Conn that writes several frames at once, each with a newline
// at its end, and knows whether there is something to read already. A reader
// that will be back at once holds its answers, and they leave together.
type lineConn interface {
	writeLines(lines []byte) error
	more() bool
}

// A reader reads what a connection brings, and routes it. It serves a request
// itself when that was quick the last time: this is cheaper than waking
// another goroutine. Should it take long after all, someone else goes on
// reading. So nothing waits behind a slow handler for more than a moment.
type reader struct {
	session *session
	conn    Conn

	turn   atomic.Uint64 // odd while the reader serves
	timer  *time.Timer   // runs takeOver; nil before the first turn
	method string        // of the request that the reader serves, with the name in its params
	name   []byte

	mu    sync.Mutex
	quick map[pace]bool
}

// A pace is what requests have in common that take about the same time: their
// method, and the name in their params as JSON.
type pace struct{ method, name string }

const (
	quickTime = 100 * time.Microsecond // what took longer is served apart
	turnTime  = 200 * time.Microsecond // how long the reader may serve
	maxQuick  = 1024
)

// read reads until the connection ends or another goroutine goes on.
func (r *reader) read() {
	s := r.session
	for {
		if s.conn.holds() && !r.more() && !r.during(s.conn.release) {
			return
		}
		frame, err := r.conn.Read(s.ctx)
		if err != nil {
			if s.unreadable(err) {
				continue
			}
			return
		}
		req := s.deliver(frame, s.out)
		if req == nil {
			continue
		}
		s.out.room(s.ctx) // who asks and does not read the answers is not read either
		switch {
		case s.side.inline(req):
			served := make(chan struct{})
			go func() { // a handler that ends its goroutine must not end the reader
				defer close(served)
				s.conn.release()
				s.serve(req)
			}()
			<-served
		case r.isQuick(req):
			if r.more() {
				s.conn.hold()
			}
			if !r.during(func() { s.serve(req) }) {
				return
			}
		default:
			go r.read()
			r.serve(req)
			return
		}
	}
}

func (r *reader) more() bool {
	lines := r.session.conn.lines
	return lines != nil && lines.more()
}

// during runs f and reports whether its caller is still the one who reads.
func (r *reader) during(f func()) (mine bool) {
	if r.timer == nil { // before the turn, from which on it may be another's
		r.timer = time.AfterFunc(turnTime, r.takeOver)
	}
	turn := r.turn.Add(1)
	r.timer.Reset(turnTime)
	returned := false
	defer func() {
		if mine = r.turn.CompareAndSwap(turn, turn+1); mine {
			r.timer.Stop()
			if !returned { // f has ended the goroutine
				go r.read()
			}
		}
	}()
	f()
	returned = true
	return
}

// takeOver goes on reading, if the one who reads still serves.
func (r *reader) takeOver() {
	if r.claim() {
		r.session.conn.release()
		r.read()
	}
}

// claim makes the caller the one who reads, if the one who reads still serves.
func (r *reader) claim() bool {
	turn := r.turn.Load()
	if turn%2 == 0 || !r.turn.CompareAndSwap(turn, turn+1) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.quick, pace{r.method, string(r.name)})
	return true
}

// passOn lets another goroutine read, if the one who reads serves: somebody is
// about to wait for an answer of the peer.
func (r *reader) passOn() {
	if r != nil && r.claim() {
		go func() {
			r.session.conn.release()
			r.read()
		}()
	}
}

// isQuick reports whether a request is one of those that have been quick.
func (r *reader) isQuick(req *Request) bool {
	r.method, r.name = req.Method, req.params.name
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.quick[pace{req.Method, string(r.name)}]
}

// serve serves a request apart from the reader, and takes its time.
func (r *reader) serve(req *Request) {
	p := pace{req.Method, string(req.params.name)}
	began := time.Now()
	r.session.serve(req)
	quick := time.Since(began) < quickTime
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !quick:
		delete(r.quick, p)
	case len(r.quick) < maxQuick:
		if r.quick == nil {
			r.quick = make(map[pace]bool)
		}
		r.quick[p] = true
	}
}

// unreadable takes an error of the reader and reports whether reading goes on.
func (s *session) unreadable(err error) bool {
	var bad *Error
	var failed *CallError
	switch {
	case errors.As(err, &failed):
		s.complete(failed.ID, outcome{err: failed})
		return true
	case errors.As(err, &bad) && bad != nil:
		s.heard.Add(1)
		s.refuse(s.out, Message{}, bad)
		return true
	case errors.Is(err, io.EOF):
		s.inputEnded(err)
	default:
		s.close(err)
	}
	return false
}

// inputEnded finishes what runs, within a bound, and ends the session. The
// peer can no longer answer, so our own calls end at once.
func (s *session) inputEnded(cause error) {
	s.mu.Lock()
	s.cause, s.deaf = cause, true
	err := s.closedError()
	s.mu.Unlock()
	s.failCalls(err)
	s.side.drain()
	s.mu.Lock()
	var idle chan struct{}
	if s.busy > 0 {
		idle = make(chan struct{})
		s.idle = idle
	}
	s.mu.Unlock()
	if idle != nil {
		t := time.NewTimer(drainTime)
		defer t.Stop()
		select {
		case <-idle:
		case <-t.C:
		case <-s.ctx.Done():
		}
	}
	s.conn.flushWithin(flushTime)
	s.close(cause)
}

// unheard ends a session whose peer takes nothing any more. As a rule the peer
// has ended it and the reader is about to see that, which gets a moment: then
// the session did not fail.
func (s *session) unheard(cause error) {
	t := time.NewTimer(unheardTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.done.wait():
	}
	s.close(cause)
}

// deliver takes one frame from the peer. It returns the request in it, which
// the caller then passes to serve; everything else it deals with itself,
// without ever running user code or waiting.
func (s *session) deliver(frame []byte, out stream) *Request {
	s.heard.Add(1)
	if members, ok := splitBatch(frame); ok {
		s.deliverBatch(members, out, nil)
		return nil
	}
	m, isResponse, bad := decodeMessage(frame)
	return s.route(m, isResponse, bad, out, nil)
}

// route takes what decodeMessage made of one message. dress, if not nil, adds
// what the transport knows of a request or notification.
func (s *session) route(m Message, isResponse bool, bad *Error, out stream, dress func(*Request)) *Request {
	switch {
	case bad != nil && isResponse:
		if !s.complete(m.ID, outcome{err: fmt.Errorf("mcp: invalid response: %s", bad.Message)}) {
			s.strayed(m, bad)
		}
	case bad != nil:
		s.refuse(out, m, bad)
	case isResponse:
		o := outcome{result: m.Result}
		if m.Error != nil {
			o.err = m.Error
		}
		if !s.complete(m.ID, o) {
			s.strayed(m, errNotAsked)
		}
	default:
		req := &Request{Method: m.Method, ID: m.ID, Params: m.Params, bad: m.ambiguous, session: s, out: out}
		if dress != nil {
			dress(req)
		}
		if m.IsRequest() {
			return s.accept(req)
		}
		s.notified(req)
	}
	return nil
}

// errNotAsked is what is wrong with a response to nothing that waits.
var errNotAsked = errors.New("mcp: a response to no request of ours, or to one that was given up")

// deliverBatch takes the members of a batch. Their answers leave together
// (2025-03-26 basic § Batching).
func (s *session) deliverBatch(members iter.Seq[[]byte], out stream, dress func(*Request)) {
	s.mu.Lock()
	allowed := s.batches
	s.mu.Unlock()
	if !allowed {
		s.refuse(out, Message{}, Errorf(CodeInvalidRequest, "batches are not part of this protocol revision"))
		return
	}
	b := &batchStream{out: out, waiting: 1}
	refused, empty := 0, true
	for member := range members {
		empty = false
		m, isResponse, bad := decodeMessage(member)
		if bad != nil {
			// A member may be two bytes, and its refusal a hundred.
			if refused++; refused == maxRefused {
				m, isResponse, bad = Message{}, false, Errorf(CodeInvalidRequest, "too many members of the batch are no messages")
			} else if refused > maxRefused {
				continue
			}
		}
		b.add()
		if answered := bad == nil && m.IsRequest() || bad != nil && !isResponse; !answered {
			b.answer(nil, 0)
			s.route(m, isResponse, bad, out, dress)
		} else if req := s.route(m, isResponse, bad, b, dress); req != nil {
			go s.serve(req)
		}
	}
	if empty {
		s.refuse(out, Message{}, Errorf(CodeInvalidRequest, "a batch must not be empty"))
		return
	}
	b.answer(nil, 0)
}

// refuse answers a message that is no request. m is what could be read of it.
func (s *session) refuse(out stream, m Message, bad *Error) {
	s.strayed(m, bad)
	if !s.side.mayAnswer() {
		out.answer(nil, 0)
		return
	}
	out.answer(appendError(nil, m.ID, bad), bad.Code)
}

// strayed deals with a message that nobody waits for.
func (s *session) strayed(m Message, err error) {
	s.log.Warn("mcp: stray message", "error", err)
	if s.stray == nil {
		return
	}
	n := note{err: err}
	if !m.ID.IsZero() || m.Method != "" || m.Result != nil || m.Error != nil {
		n.m = &m
	}
	s.queueNote(n)
}

// accept makes a request ready to be served, or refuses it and returns nil.
func (s *session) accept(req *Request) *Request {
	bad := req.bad
	if bad == nil && (req.params == nil || !req.params.isOf(req.Params)) { // else over HTTP they have been looked at
		req.params, bad = scanParams(req.Params)
	}
	if bad == nil {
		bad = s.side.admit(req)
	}
	s.mu.Lock()
	switch {
	case bad != nil:
	case s.closed:
		bad = Errorf(CodeInternalError, "the session is closing")
	case s.running[req.ID] != nil:
		bad = Errorf(CodeInvalidRequest, "a request with this id is still running")
	case s.busy >= maxRunning:
		bad = Errorf(CodeInternalError, "too many requests are running")
	default:
		if s.running == nil {
			s.running = make(map[ID]*Request)
		}
		s.running[req.ID] = req
		s.busy++
	}
	s.mu.Unlock()
	switch {
	case bad == nil:
		return req
	case s.side.mayAnswer():
		req.out.answer(appendError(nil, req.ID, bad), bad.Code)
	default:
		s.strayed(req.message(), bad)
		req.out.answer(nil, 0)
	}
	return nil
}

// message returns the message that the request came in.
func (r *Request) message() Message {
	return Message{ID: r.ID, Method: r.Method, Params: r.Params}
}

// serve runs the handler of an accepted request and sends what it returns.
func (s *session) serve(req *Request) {
	var result any
	err := errNoReturn
	defer func() { s.finish(req, result, err) }() // deferred for a handler that does not return
	result, err = s.run((*requestContext)(req), req)
}

type withValues struct {
	context.Context
	values context.Context
}

func (c withValues) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// errNoReturn is the failure of a handler that ends its goroutine, as
// [runtime.Goexit] and the FailNow of a test do, without a panic.
var errNoReturn = errors.New("the handler ended its goroutine")

// An answerBuffer is what an answer is written in.
type answerBuffer struct{ frame []byte }

var answerBuffers = sync.Pool{New: func() any { return &answerBuffer{make([]byte, 0, 512)} }}

// finish answers a request that has been served.
func (s *session) finish(req *Request, result any, err error) {
	buf := answerBuffers.Get().(*answerBuffer)
	var code int
	buf.frame, code = s.encodeAnswer(buf.frame[:0], req, result, err)
	frame := buf.frame
	s.mu.Lock()
	delete(s.running, req.ID) // who has the answer may use the id again
	if s.conn == nil && len(s.running) == 0 {
		s.running = nil // over HTTP there are many sessions that do nothing
	}
	s.served = time.Now()
	s.mu.Unlock()
	if !req.finish() {
		frame = nil // a cancelled request is not answered
	}
	req.endContext(nil)
	req.out.answer(frame, code)
	if cap(buf.frame) <= maxCopy {
		answerBuffers.Put(buf)
	}
	if req.answered != nil {
		req.answered(frame == nil)
	}
	s.mu.Lock()
	if s.busy--; s.busy == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	s.mu.Unlock()
}

// run calls the side's handler and turns a panic into an error.
func (s *session) run(ctx context.Context, req *Request) (result any, err error) {
	defer s.recovered(req, &err)
	return s.side.handle(ctx, req)
}

// recovered turns a panic of the user's code into an error. It is deferred.
func (s *session) recovered(req *Request, err *error) {
	if p := recover(); p != nil {
		s.log.Error("mcp: panic in a handler", "method", req.Method, "panic", p, "stack", string(debug.Stack()))
		*err = Errorf(CodeInternalError, "internal error")
	}
}

// encodeAnswer appends the response to a request, and returns its code if it
// is an error.
func (s *session) encodeAnswer(dst []byte, req *Request, result any, err error) (frame []byte, code int) {
	if err == nil {
		frame, err = s.encodeResult(dst, req, result)
	}
	if err != nil {
		e := s.wireError(req, err)
		return appendError(dst, req.ID, e), e.Code
	}
	return append(frame, '}'), 0
}

// encodeResult runs the user's code, too, where a result encodes itself.
func (s *session) encodeResult(dst []byte, req *Request, result any) (frame []byte, err error) {
	defer s.recovered(req, &err)
	return s.side.appendResult(appendResultHead(dst, req.ID), req, result)
}

// errorIn returns the *Error within err, nil when there is none. It costs
// nothing when err is nil.
func errorIn(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	errors.As(err, &e)
	return e
}

// wireError is what the peer gets to know of an error.
func (s *session) wireError(req *Request, err error) *Error {
	if e := errorIn(err); e != nil && e.Code != 0 {
		return e
	}
	req.mu.Lock()
	cancelled := req.ended // then it is no failure, and nobody is told
	req.mu.Unlock()
	if !cancelled && s.ctx.Err() == nil {
		s.log.Error("mcp: request failed", "method", req.Method, "error", err)
	}
	return Errorf(CodeInternalError, "internal error")
}

// notified takes a notification. Cancellation and progress are routed here;
// for the rest the side's handler runs, one after the other.
func (s *session) notified(req *Request) {
	var bad *Error
	if req.params, bad = scanParams(req.Params); bad == nil {
		bad = s.side.admit(req)
	}
	if bad != nil {
		s.strayed(req.message(), bad)
		return
	}
	switch req.Method {
	case notifyCancelled:
		s.cancelled(req)
	case notifyProgress:
		s.progressed(req)
	}
	s.queueNote(note{req: req})
}

// queueNote puts a note behind those that wait for their callback.
func (s *session) queueNote(n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return
	case len(s.notes) >= maxNotes, s.noteBytes >= maxBacklog:
		s.log.Warn("mcp: too much waits for its callback; a notification is dropped")
		return
	}
	s.notes = append(s.notes, n)
	s.noteBytes += n.size()
	s.noted++
	if !s.noting {
		s.noting = true
		go s.runNotes()
	}
}

// runNotes runs the callbacks of what came in, in that order, and ends when
// there is no more.
func (s *session) runNotes() {
	ended := false
	defer func() {
		if !ended { // the handler ended the goroutine: the next one goes on
			s.log.Error("mcp: notification failed", "error", errNoReturn)
			go s.runNotes()
		}
	}()
	for {
		n, ok := s.nextNote()
		switch {
		case !ok:
			ended = true
			return
		case n.req == nil:
			s.runStray(n)
		default:
			if _, err := s.run(s.ctx, n.req); err != nil {
				s.log.Warn("mcp: notification failed", "method", n.req.Method, "error", err)
			}
		}
	}
}

func (s *session) nextNote() (n note, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = s.noted - int64(len(s.notes))
	if s.toldOne != nil {
		close(s.toldOne)
		s.toldOne = nil
	}
	if len(s.notes) == 0 || s.mute {
		s.notes, s.noteBytes, s.noting = nil, 0, false
		return note{}, false
	}
	n, s.notes = s.notes[0], s.notes[1:]
	s.noteBytes -= n.size()
	return n, true
}

func (s *session) runStray(n note) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("mcp: panic in Stray", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	s.stray(n.m, n.err)
}

// awaitNotes waits, within d, until the callbacks of the first upTo notes are
// over, and reports whether they are. A callback does not wait for itself.
func (s *session) awaitNotes(upTo int64, d time.Duration) bool {
	var timer *time.Timer
	for {
		s.mu.Lock()
		if s.told >= upTo || s.mute {
			s.mu.Unlock()
			return true
		}
		if s.toldOne == nil {
			s.toldOne = make(chan struct{})
		}
		next := s.toldOne
		s.mu.Unlock()
		if timer == nil {
			if insideCallback() {
				return true
			}
			timer = time.NewTimer(d)
			defer timer.Stop()
		}
		select {
		case <-next:
		case <-timer.C:
			return false
		}
	}
}

// settle lets the callbacks of notifications that came before the answer to a
// call run before the call returns, so that a log message is there when the
// result is. The wait is short, since a callback may wait for the very caller,
// and a callback that has been waited for in vain is not waited for again.
func (s *session) settle(o outcome) {
	s.mu.Lock()
	wait := s.told < o.notes && s.slow != s.told+1
	s.mu.Unlock()
	if wait && !s.awaitNotes(o.notes, settleTime) {
		s.mu.Lock()
		s.slow = s.told + 1
		s.mu.Unlock()
	}
}

// insideCallback reports whether its caller runs within a callback for
// notifications or clean-up, of any session.
func insideCallback() bool {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".(*session).runNotes") || strings.HasSuffix(f.Function, ".(*session).runCleanups") {
			return true
		}
		if !more {
			return false
		}
	}
}

// cancelled ends the context of a request that the peer no longer wants. One
// that is unknown, finished or malformed is ignored
// (2026-07-28 basic/patterns/cancellation).
func (s *session) cancelled(note *Request) {
	var p CancelledParams
	if err := decodeAt(note.Params, &p, note.rev, false); err != nil {
		s.log.Warn("mcp: cancellation ignored", "error", err)
		return
	}
	s.mu.Lock()
	req := s.running[p.RequestID]
	s.mu.Unlock()
	if req == nil || req.Method == methodInitialize || !req.end() {
		return
	}
	s.log.Info("mcp: request cancelled by the peer", "method", req.Method, "reason", p.Reason)
	req.endContext(&cancelledByPeer{p.Reason})
}

// outcome is how a call ended.
type outcome struct {
	result json.RawMessage
	err    error
	notes  int64 // how many notes were there before it
}

// A call is a request of ours that waits for its answer.
type call struct {
	answer   chan outcome // holds one; the first answer wins
	active   chan struct{}
	onNotice func(ProgressParams)

	mu      sync.Mutex
	notices []ProgressParams
}

// A callSpec says how to make a call.
type callSpec struct {
	method   string
	id       ID                   // zero: the next number
	params   []byte               // encoded, nil for none
	timeout  time.Duration        // since the last sign of life; 0 for none
	limit    time.Duration        // over all; 0 for none
	progress func(ProgressParams) // nil: not asked for
	// withToken returns params with a progress token, the call's id.
	withToken func(id ID) []byte
	keep      bool // no cancellation is sent when the caller gives up
}

// call sends a request and waits for its answer. Progress callbacks run on
// the caller's goroutine, in order, before call returns.
func (s *session) call(ctx context.Context, out stream, spec callSpec) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, doing(spec.method, err)
	}
	c := &call{answer: make(chan outcome, 1), active: make(chan struct{}, 1), onNotice: spec.progress}
	s.mu.Lock()
	if s.closed || s.deaf {
		err := s.closedError()
		s.mu.Unlock()
		return nil, doing(spec.method, err)
	}
	id := spec.id
	if id.IsZero() {
		s.lastID++
		id = IntID(s.lastID)
	}
	s.expect(id, c)
	s.mu.Unlock()
	defer s.forget(id)
	params := spec.params
	if spec.progress != nil {
		params = spec.withToken(id)
	}
	if err := sendWithin(ctx, spec.timeout, out, appendRequest(nil, id, spec.method, params)); err != nil {
		return nil, doing(spec.method, err)
	}
	s.reader.passOn()
	o, answered := s.await(ctx, c, spec)
	if !answered && !s.forget(id) {
		o = <-c.answer // it came just then: there is nothing to cancel
		c.report(s.log)
	} else if answered {
		s.settle(o)
	} else if !spec.keep {
		note, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer stop()
		s.notify(note, out, notifyCancelled, &CancelledParams{RequestID: id, Reason: o.err.Error()}, rev20260728)
	}
	var peer *Error
	if o.err != nil && !errors.As(o.err, &peer) {
		o.err = doing(spec.method, o.err)
	}
	return o.result, o.err
}

// sendWithin sends a request. A peer that does not read costs the caller no
// more time than one that does not answer.
func sendWithin(ctx context.Context, d time.Duration, out stream, frame []byte) error {
	if d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d)
		defer stop()
	}
	return send(ctx, out, frame)
}

// await waits for the answer of a call, and for its progress meanwhile. It
// reports whether the call was answered, as opposed to given up.
func (s *session) await(ctx context.Context, c *call, spec callSpec) (o outcome, answered bool) {
	var expired, over <-chan time.Time
	var timer *time.Timer
	if spec.timeout > 0 {
		timer = time.NewTimer(spec.timeout)
		defer timer.Stop()
		expired = timer.C
	}
	if spec.limit > 0 {
		limit := time.NewTimer(spec.limit)
		defer limit.Stop()
		over = limit.C
	}
	for {
		select {
		case o := <-c.answer:
			c.report(s.log)
			return o, true
		case <-c.active:
			if c.report(s.log); timer != nil {
				timer.Reset(spec.timeout)
			}
		case <-expired:
			more := s.patience(spec.timeout)
			if more <= 0 {
				return outcome{err: fmt.Errorf("no answer within %v: %w", spec.timeout, context.DeadlineExceeded)}, false
			}
			timer.Reset(more)
		case <-over:
			return outcome{err: fmt.Errorf("no answer within %v: %w", spec.limit, context.DeadlineExceeded)}, false
		case <-ctx.Done():
			return outcome{err: ctx.Err()}, false
		}
	}
}

// report runs the progress callbacks that wait. One that panics costs the
// call nothing.
func (c *call) report(log *slog.Logger) {
	c.mu.Lock()
	notices := c.notices
	c.notices = nil
	c.mu.Unlock()
	for _, p := range notices {
		func() {
			defer func() {
				if r := recover(); r != nil {
					log.Error("mcp: panic in a progress callback", "panic", r, "stack", string(debug.Stack()))
				}
			}()
			c.onNotice(p)
		}()
	}
}

// A pauser is a Conn that may hold a call up for the user, who signs in: it says
// whether it does, and when it did last.
type pauser interface {
	paused() (now bool, last time.Time)
}

// patience returns how much longer a call waits that had no sign of life for
// d: the time in which the peer waited for us does not count.
func (s *session) patience(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, waiting := s.served, len(s.running) > 0
	if s.conn != nil {
		if p, ok := s.conn.conn.(pauser); ok {
			now, last := p.paused()
			if waiting = waiting || now; last.After(since) {
				since = last
			}
		}
	}
	if waiting {
		return d
	}
	return d - time.Since(since)
}

// progressed hands a progress notice to the call it is about. Notices for
// tokens that are not in use are dropped. Peers that write null for what they
// do not know are understood.
func (s *session) progressed(note *Request) {
	var p ProgressParams
	if err := decodeAt(note.Params, &p, note.rev, false); err != nil {
		s.log.Warn("mcp: progress ignored", "error", err)
		return
	}
	s.mu.Lock()
	c := s.calls[p.ProgressToken]
	s.mu.Unlock()
	if c == nil || c.onNotice == nil { // without a callback no token was sent
		return
	}
	c.mu.Lock()
	if len(c.notices) == maxProgress { // a slow callback sees the newest
		c.notices = c.notices[1:]
	}
	c.notices = append(c.notices, p)
	c.mu.Unlock()
	select {
	case c.active <- struct{}{}:
	default:
	}
}

// complete hands an outcome to the call with that id and reports whether
// there is one.
func (s *session) complete(id ID, o outcome) bool {
	s.mu.Lock()
	c := s.calls[id]
	delete(s.calls, id)
	o.notes = s.noted
	s.mu.Unlock()
	if c == nil {
		return false
	}
	c.answer <- o
	return true
}

// forget gives a call up and reports whether it still waited for its answer.
func (s *session) forget(id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waited := s.calls[id]
	delete(s.calls, id)
	return waited
}

// encodeParams encodes the params of a message, which are an object; nil is
// none.
func encodeParams(method string, params any, rev *revision) ([]byte, error) {
	if params == nil {
		return nil, nil
	}
	encoded, err := encodeAt(nil, params, rev)
	switch {
	case err != nil:
		return nil, doing(method, err)
	case !hasShape(encoded, "object"):
		return nil, fmt.Errorf("mcp: %s: params must encode to a JSON object", method)
	}
	return encoded, nil
}

func encodeNotification(method string, params any, rev *revision) ([]byte, error) {
	encoded, err := encodeParams(method, params, rev)
	if err != nil {
		return nil, err
	}
	return appendNotification(nil, method, encoded), nil
}

// notify sends a notification.
func (s *session) notify(ctx context.Context, out stream, method string, params any, rev *revision) error {
	frame, err := encodeNotification(method, params, rev)
	if err != nil {
		return err
	}
	if err := send(ctx, out, frame); err != nil {
		return doing(method, err)
	}
	return nil
}

// A pinger keeps an eye on a quiet peer, by a timer.
type pinger struct {
	every   time.Duration
	timer   *time.Timer
	silent  int   // periods in a row without a sign of life
	pending *call // the ping that has not been answered, as far as we know
	id      ID    // of pending
}

// keepAlive pings a quiet peer from now on, and ends the session when there
// has been no sign of life for three periods while neither side works for the
// other (2025-11-25 basic/utilities/ping).
func (s *session) keepAlive(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if every > 0 && !s.closed && s.pinger == nil && s.conn != nil {
		p := &pinger{every: every}
		p.timer = time.AfterFunc(every, func() { s.look(p) })
		s.pinger = p
	}
}

// look is what a pinger does after each period.
func (s *session) look(p *pinger) {
	heard := s.heard.Swap(0)
	alive := heard > 0
	if p.pending != nil {
		select {
		case o := <-p.pending.answer:
			if errors.Is(o.err, Errorf(CodeMethodNotFound, "")) {
				s.log.Warn("mcp: the peer has no ping; it is not pinged any more")
				return
			}
			p.pending = nil
			heard-- // a peer that only answers pings is quiet
		default:
		}
	}
	s.mu.Lock()
	busy := len(s.running) + len(s.calls)
	if s.calls[p.id] != nil {
		busy-- // the ping itself
	}
	s.mu.Unlock()
	switch {
	case alive || busy > 0: // who works, or waits for us, need not answer pings meanwhile
		p.silent = 0
	default:
		if p.silent++; p.silent == maxSilent {
			s.close(fmt.Errorf("mcp: no sign of life from the peer within %v", maxSilent*p.every))
			return
		}
		s.log.Warn("mcp: no sign of life from the peer", "for", time.Duration(p.silent)*p.every)
	}
	if heard <= 0 && p.pending == nil {
		s.ping(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		p.timer.Reset(p.every)
	}
}

// ping sends a ping whose answer is looked for after the next period.
func (s *session) ping(p *pinger) {
	c := &call{answer: make(chan outcome, 1)}
	s.mu.Lock()
	if s.closed || s.deaf {
		s.mu.Unlock()
		return
	}
	s.lastID++
	p.id, p.pending = IntID(s.lastID), c
	s.expect(p.id, c)
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(s.ctx, p.every)
	defer stop()
	if err := send(ctx, s.out, appendRequest(nil, p.id, methodPing, nil)); err != nil {
		s.log.Warn("mcp: ping failed", "error", err)
		s.forget(p.id)
		p.pending = nil
	}
}

// expect notes a call whose answer is to come. Under s.mu.
func (s *session) expect(id ID, c *call) {
	if s.calls == nil {
		s.calls = make(map[ID]*call)
	}
	s.calls[id] = c
}

// failCalls ends all calls that wait.
func (s *session) failCalls(err error) {
	s.mu.Lock()
	calls := s.calls
	s.calls = nil
	s.mu.Unlock()
	for _, c := range calls {
		c.answer <- outcome{err: err}
	}
}

// close ends the session: calls fail, callbacks of what came before run,
// handlers lose their context, the connection closes, and what was registered
// with OnClose runs. cause is io.EOF when the peer ended it and nil when we
// did. Only the first call counts; it never waits for handlers, so that one
// may close its own session, and for callbacks only within a bound.
func (s *session) close(cause error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		if !insideCallback() { // which whoever closes waits for
			<-s.cleaned.wait()
		}
		return nil
	}
	s.closed = true
	if !s.deaf { // else the peer has ended it, and may not take what is still written
		s.cause = cause
	}
	err := s.closedError()
	noted := s.noted
	if s.pinger != nil {
		s.pinger.timer.Stop()
	}
	s.mu.Unlock()
	s.failCalls(err)
	s.awaitNotes(noted, noteTime)
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
	s.stop(ErrClosed)
	var closeErr error
	if s.conn != nil {
		closeErr = s.conn.conn.Close()
	}
	s.done.open()
	s.side.ended()
	s.cleanUp()
	return closeErr
}

// onClose registers f to run when the session is over; at once if it is.
func (s *session) onClose(f func()) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.cleanups = append(s.cleanups, f)
	}
	s.mu.Unlock()
	if over {
		s.runCleanup(f)
	}
}

// cleanUp runs what was registered with onClose, the last first, and waits
// for it within a bound.
func (s *session) cleanUp() {
	defer s.cleaned.open()
	s.mu.Lock()
	s.over = true
	waiting := len(s.cleanups) > 0
	s.mu.Unlock()
	if !waiting {
		return
	}
	finished := make(chan struct{})
	go s.runCleanups(finished)
	t := time.NewTimer(cleanTime)
	defer t.Stop()
	select {
	case <-finished:
	case <-t.C:
		s.log.Error("mcp: what OnClose registered takes too long; nobody waits for it any more", "limit", cleanTime)
	}
}

func (s *session) runCleanups(finished chan struct{}) {
	ended := false
	defer func() {
		if !ended { // one ended the goroutine: the next one goes on
			s.log.Error("mcp: clean-up failed", "error", errNoReturn)
			go s.runCleanups(finished)
		}
	}()
	for {
		s.mu.Lock()
		last := len(s.cleanups) - 1
		if last < 0 {
			s.mu.Unlock()
			ended = true
			close(finished)
			return
		}
		f := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		s.mu.Unlock()
		s.runCleanup(f)
	}
}

func (s *session) runCleanup(f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("mcp: panic in OnClose", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// closedError is the error of calls on a session that ended, under s.mu.
func (s *session) closedError() error {
	if s.cause == nil || s.cause == io.EOF || errors.Is(s.cause, ErrClosed) {
		return ErrClosed
	}
	return &lostError{s.cause}
}

// wait waits for the end of the session and returns why it ended; nil when
// one of the sides closed it.
func (s *session) wait() error {
	<-s.done.wait()
	if !insideCallback() {
		<-s.cleaned.wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.cause, io.EOF) || errors.Is(s.cause, ErrClosed) {
		return nil
	}
	return s.cause
}

// A connStream writes to a connection. Frames queue up and leave in order;
// whoever finds no one writing writes, in a goroutine of its own unless it
// has nothing else to do.
type connStream struct {
	conn    Conn
	lines   lineConn // conn; nil if it takes one frame at a time
	session *session

	mu      sync.Mutex
	queue   *lineQueue    // nil when empty
	writing bool          // someone works on the queue
	held    bool          // the reader will be back to write what is queued
	drained chan struct{} // closed when the queue is empty, if someone waits

	broken atomic.Bool // a frame could not be written
}

// A lineQueue is what waits to be written, each with a newline at its end.
type lineQueue struct{ lines []byte }

var lineQueues = sync.Pool{New: func() any { return new(lineQueue) }}

const (
	maxHeld = 32 << 10 // bytes that are held for the reader
	maxCopy = 64 << 10 // a longer answer is written from where it is, when nothing else is
)

func (w *connStream) put(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session.ctx.Err() != nil {
		return ErrClosed
	}
	if w.push(frame) {
		go w.flush()
	}
	return nil
}

func (w *connStream) answer(frame []byte, _ int) {
	if frame == nil {
		return
	}
	if w.room(w.session.ctx) != nil {
		return // the session is over
	}
	w.mu.Lock()
	if len(frame) > maxCopy && !w.writing {
		w.writing = true
		first := w.take()
		w.mu.Unlock()
		w.write(first)
		w.check(w.conn.Write(w.session.ctx, frame))
		w.flush()
		return
	}
	mine := w.push(frame)
	w.mu.Unlock()
	if mine {
		w.flush()
	}
}

func (w *connStream) room(ctx context.Context) error {
	for {
		w.mu.Lock()
		if w.session.ctx.Err() != nil {
			w.mu.Unlock()
			return ErrClosed
		}
		if w.queue == nil || len(w.queue.lines) < maxBacklog {
			w.mu.Unlock()
			return nil
		}
		drained := w.waiter()
		w.mu.Unlock()
		select {
		case <-drained:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.session.ctx.Done():
			return ErrClosed
		}
	}
}

// push queues a frame and reports whether the caller must flush. Under w.mu.
func (w *connStream) push(frame []byte) bool {
	if w.queue == nil {
		w.queue = lineQueues.Get().(*lineQueue)
	}
	w.queue.lines = append(append(w.queue.lines, frame...), '\n')
	if w.writing || w.held && len(w.queue.lines) < maxHeld {
		return false
	}
	w.writing = true
	return true
}

// take empties the queue. Under w.mu.
func (w *connStream) take() *lineQueue {
	queue := w.queue
	w.queue = nil
	return queue
}

// hold keeps what is queued from now on for a reader that will be back soon.
func (w *connStream) hold() {
	w.mu.Lock()
	w.held = true
	w.mu.Unlock()
}

func (w *connStream) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// release writes what was held.
func (w *connStream) release() {
	w.mu.Lock()
	w.held = false
	mine := w.queue != nil && !w.writing
	w.writing = w.writing || mine
	w.mu.Unlock()
	if mine {
		w.flush()
	}
}

// waiter returns a channel that is closed when the queue is empty. Under w.mu.
func (w *connStream) waiter() chan struct{} {
	if w.drained == nil {
		w.drained = make(chan struct{})
	}
	return w.drained
}

// flush writes what is queued until there is no more.
func (w *connStream) flush() {
	for {
		w.mu.Lock()
		queue := w.take()
		if queue == nil {
			w.writing = false
			if w.drained != nil {
				close(w.drained)
				w.drained = nil
			}
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		w.write(queue)
	}
}

// write writes frames: in one piece if the connection can.
func (w *connStream) write(queue *lineQueue) {
	if queue == nil {
		return
	}
	if w.lines != nil {
		w.check(w.lines.writeLines(queue.lines))
	} else {
		for frame := range bytes.SplitSeq(queue.lines[:len(queue.lines)-1], []byte{'\n'}) {
			if !w.check(w.conn.Write(w.session.ctx, frame)) {
				break
			}
		}
	}
	if cap(queue.lines) <= maxCopy {
		queue.lines = queue.lines[:0]
		lineQueues.Put(queue)
	}
}

// check reports whether a frame could be written, and ends the session if not.
func (w *connStream) check(err error) bool {
	if err != nil && w.session.ctx.Err() == nil && !w.broken.Swap(true) {
		go w.session.unheard(doing("write", err))
	}
	return err == nil
}

// flushWithin waits until all that is queued has been written.
func (w *connStream) flushWithin(d time.Duration) {
	w.mu.Lock()
	if !w.writing {
		w.mu.Unlock()
		return
	}
	drained := w.waiter()
	w.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-drained:
	case <-t.C:
	case <-w.session.ctx.Done():
	}
}

// A batchStream collects the answers to a batch and sends them as one. What
// belongs to a request but is not its answer goes out at once.
type batchStream struct {
	out stream

	mu      sync.Mutex
	waiting int
	answers [][]byte
}

func (b *batchStream) room(ctx context.Context) error { return b.out.room(ctx) }

func (b *batchStream) put(frame []byte) error { return b.out.put(frame) }

func (b *batchStream) add() {
	b.mu.Lock()
	b.waiting++
	b.mu.Unlock()
}

func (b *batchStream) answer(frame []byte, _ int) {
	b.mu.Lock()
	if frame != nil {
		b.answers = append(b.answers, bytes.Clone(frame))
	}
	b.waiting--
	complete := b.waiting == 0
	b.mu.Unlock()
	if !complete {
		return
	}
	if len(b.answers) == 0 {
		b.out.answer(nil, 0)
		return
	}
	all := append([]byte{'['}, bytes.Join(b.answers, []byte{','})...)
	b.out.answer(append(all, ']'), 0)
}

// InMemory returns two ends of a connection within the process: what one
// writes the other reads. Each end connects once.
func InMemory() (client, server Transport) {
	a, b := make(chan []byte, 64), make(chan []byte, 64)
	aGone, bGone := make(chan struct{}), make(chan struct{})
	return &memory{in: a, out: b, gone: aGone, peerGone: bGone}, &memory{in: b, out: a, gone: bGone, peerGone: aGone}
}

// memory is one end of an in-memory connection, transport and conn at once.
type memory struct {
	in, out        chan []byte
	gone, peerGone chan struct{} // closed with this end, and with the other
	connect, close sync.Once
}

func (m *memory) Connect(context.Context) (Conn, error) {
	err := errors.New("mcp: an end of InMemory connects once")
	m.connect.Do(func() { err = nil })
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *memory) Read(ctx context.Context) ([]byte, error) {
	select {
	case frame := <-m.in:
		return frame, nil
	default:
	}
	select {
	case frame := <-m.in:
		return frame, nil
	case <-m.gone:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.peerGone:
		select { // what was written before the end
		case frame := <-m.in:
			return frame, nil
		default:
			return nil, io.EOF
		}
	}
}

func (m *memory) Write(ctx context.Context, frame []byte) error {
	select {
	case <-m.gone: // though there may be room
		return ErrClosed
	case <-m.peerGone:
		return io.ErrClosedPipe
	default:
	}
	select {
	case <-m.gone:
		return ErrClosed
	case <-m.peerGone:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	case m.out <- bytes.Clone(frame):
		return nil
	}
}

func (m *memory) Close() error {
	m.close.Do(func() { close(m.gone) })
	return nil
}
