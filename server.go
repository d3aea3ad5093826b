package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Server answers clients: of every revision, on every transport, any
// number at a time. Its tools, resources and prompts may change while it
// serves. Make one with [NewServer].
type Server struct {
	info  Implementation
	opts  ServerOptions
	revs  []*revision // served, oldest first
	log   *slog.Logger
	seal  *sealer
	stamp []byte // info, encoded for the _meta of modern results

	mu         sync.RWMutex
	tools      registry[*toolEntry]
	resources  registry[*resourceEntry]
	templates  registry[*templateEntry]
	prompts    registry[*promptEntry]
	custom     map[string]Handler
	lastMeta   atomic.Pointer[metaFacts] // the newest facts from _meta, to decode them once
	handler    Handler                   // dispatch inside all middleware
	wrapped    bool                      // there is middleware
	embeds     atomic.Bool               // a tool embedded a resource, which was not declared
	watchers   map[*watcher]bool
	spentMu    sync.Mutex
	spent      [2]map[[32]byte]bool // states that were used, by age; see spend
	spentSince time.Time            // when the newer of the two began

	pages map[string]*ServerSession // open url elicitations by id, and whose they are
}

// ServerOptions say how a server works. The zero value is good for most.
type ServerOptions struct {
	// Instructions tell the client's model how to use the server.
	Instructions string
	// Logger gets what the server notices about itself and its peers. nil
	// logs nothing.
	Logger *slog.Logger
	// Versions are the protocol revisions to serve; nil means all.
	Versions []string
	// KeepAlive is how often a quiet client is pinged, before 2026-07-28, which has
	// no ping; 0 means never. One that gives no sign of life for three times
	// that, while neither side works for the other, is lost: the session ends
	// with an error. Any message is a sign of life. Over HTTP, where a client
	// has no connection, nobody is pinged; see [HTTPOptions] IdleTimeout.
	KeepAlive time.Duration
	// Stray hears of messages that nobody waits for or that cannot be read:
	// responses with an id that is unknown, null, or of a call that was given
	// up, malformed messages, refused notifications. m is what could be read
	// of it, nil if that is nothing, and err says what is wrong with it. Calls
	// come one after the other, in order with other notifications.
	Stray func(m *Message, err error)
	// Capabilities replaces what the server would declare by what is
	// registered with it. nil means that it is derived.
	Capabilities *ServerCapabilities
	// PageSize is how many entries a page of a list has; 0 means 1000.
	PageSize int
	// Complete answers completion/complete. nil means that the server has no
	// completions.
	Complete func(ctx context.Context, req *Request, p *CompleteParams) (*CompleteResult, error)
	// StateKeys seal what a modern client carries from one round of a
	// request to the next; see [Request.Elicit]. The first seals, all open,
	// so replicas that share them can each serve any round. Each key is any
	// secret of 16 bytes or more. nil means a random key that lives as long
	// as the server.
	StateKeys [][]byte
	// StateTTL is how long sealed state is good for; 0 means 10 minutes.
	StateTTL time.Duration
	// StateOnce makes each state good for one retry only, for handlers that
	// must not act twice on the same answers. A client whose retry was lost has
	// to begin again. What was used is kept in memory until it expires, so of
	// replicas each must get the retries of its own.
	StateOnce bool
	// MaxRounds is how often one request may ask the client for input;
	// 0 means 10.
	MaxRounds int
	// Lifespan is called once for each Run or Connect, before the first message,
	// and makes what handlers share: the values of the context that it returns
	// reach all of them. The function that it returns, if not nil, runs when the
	// last handler has returned and what was registered with OnClose has run; Run
	// waits for it, within 5 seconds. An error ends Run or Connect before the
	// transport is connected: a socket or pipe under it is then yours to close.
	Lifespan func(ctx context.Context) (context.Context, func(), error)
	// Filter reports whether who sent req may see what is registered under a
	// name: the name of a tool or prompt, the URI of a resource, the text of a
	// URI template. What it hides is neither listed nor found, as if it were
	// not registered, and lists are then never declared public. It must not
	// depend on earlier requests or on the connection (2026-07-28
	// server/tools § Capabilities). nil shows all to all.
	Filter func(ctx context.Context, req *Request, name string) bool
	// Cache says how long clients of 2026-07-28 may use lists and the answer
	// to server/discover again, and for whom. The zero value is not at all,
	// and only for the caller. What resources/read returns has its own. Until
	// that time is over a client may not see what has changed, unless it
	// listens; the notice may then come later than the answer to the call that
	// changed something.
	Cache CacheHints
}

// NewServer returns a server that tells clients it is info. opts may be nil.
// It panics if opts name an unknown version or cache scope, or hold a short
// key, or if what the server says of itself breaks a rule of the protocol.
func NewServer(info Implementation, opts *ServerOptions) *Server {
	s := &Server{info: info, custom: make(map[string]Handler), watchers: make(map[*watcher]bool), spent: [2]map[[32]byte]bool{{}, {}}, pages: make(map[string]*ServerSession)}
	if opts != nil {
		s.opts = *opts
	}
	if s.log = s.opts.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.opts.PageSize <= 0 {
		s.opts.PageSize = 1000
	}
	if s.opts.MaxRounds <= 0 {
		s.opts.MaxRounds = 10
	}
	if s.opts.StateTTL <= 0 {
		s.opts.StateTTL = 10 * time.Minute
	}
	mustFit("NewServer", info.Name, s.checkOptions())
	s.revs = mustRevisions(s.opts.Versions)
	s.seal = newSealer(s.opts.StateKeys)
	s.stamp, _ = encodeAt(nil, info, rev20260728)
	s.handler = s.dispatch
	return s
}

// checkOptions says which rule the server's description of itself breaks.
func (s *Server) checkOptions() error {
	if err := checkIcons(s.info.Icons); err != nil {
		return err
	}
	if !validScope(s.opts.Cache.CacheScope) {
		return fmt.Errorf(`opts.Cache.CacheScope is %q: it must be "private" or "public"`, s.opts.Cache.CacheScope)
	}
	if s.opts.Filter != nil {
		s.opts.Cache.CacheScope = "private" // others see other lists
	}
	if caps := s.opts.Capabilities; caps != nil {
		if err := checkExtensions(caps.Extensions); err != nil {
			return err
		}
	}
	return nil
}

// mustFit panics with an error of registration: which rule what the program
// registers breaks.
func mustFit(what, name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("mcp: %s %q: %s", what, name, strings.TrimPrefix(err.Error(), "mcp: ")))
	}
}

// checkDescribed checks what tools, resources, templates and prompts have in
// common.
func checkDescribed(icons []Icon, a *Annotations, meta Meta) error {
	return cmp.Or(checkIcons(icons), checkAnnotations(a), checkMetaKeys(meta))
}

// validScope reports whether a scope is one of the protocol's, or unsaid
// (2026-07-28 server/utilities/caching).
func validScope(scope string) bool { return scope == "" || scope == "private" || scope == "public" }

// mustRevisions looks versions up, oldest first; nil means all.
func mustRevisions(versions []string) []*revision {
	if versions == nil {
		return revisions[:]
	}
	var revs []*revision
	for _, rev := range revisions {
		if slices.Contains(versions, rev.version) {
			revs = append(revs, rev)
		}
	}
	if len(revs) == 0 || len(revs) != len(versions) {
		panic(fmt.Sprintf("mcp: versions %q: each must be a known protocol version, named once", versions))
	}
	return revs
}

// Use puts middleware around the handling of every message that arrives,
// requests and notifications alike, known methods or not. The first is the
// outermost. It must be called before the server serves.
func (s *Server) Use(middleware ...Middleware) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(middleware) {
		s.handler, s.wrapped = m(s.handler), true
	}
}

// Handle registers a handler for a method that the protocol does not define,
// or replaces how the server answers one that it does. It panics for
// "initialize", which belongs to the session.
func (s *Server) Handle(method string, h Handler) {
	if method == "" || method == methodInitialize || h == nil {
		panic("mcp: Handle needs a method other than initialize, and a handler")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.custom[method] = h
}

// Handle registers a handler whose params and result are Go values; see
// [Server.Handle]. Absent params are an empty object. Params that do not fit
// P, member by member and with exact names, are answered with
// [CodeInvalidParams] and do not reach h. R must encode to a JSON object; nil
// is the empty one.
func Handle[P, R any](s *Server, method string, h func(ctx context.Context, req *Request, p P) (R, error)) {
	if h == nil { // which the function around h would hide
		panic("mcp: Handle needs a handler")
	}
	own := isOwn(reflect.TypeFor[P]())
	s.Handle(method, func(ctx context.Context, req *Request) (any, error) {
		params, err := req.Params, error(nil)
		if params == nil {
			params = json.RawMessage("{}")
		}
		var p P
		if own { // the protocol's types know what belongs to a revision
			err = decodeAt(params, &p, req.rev, true)
		} else {
			err = decodeAny(params, &p, "params")
		}
		if err != nil {
			return nil, Errorf(CodeInvalidParams, "%v", err)
		}
		r, err := h(ctx, req, p)
		if err == nil && reflect.TypeFor[R]().Kind() == reflect.Struct {
			return &r, nil // so that members that encode themselves by a pointer do, as big.Int
		}
		return r, err
	})
}

// Run serves one connection of t until the client ends it or ctx does. At the
// end of input it answers what it is working on, within a bound, and returns
// nil. When ctx ends it closes the session, as [ServerSession.Close] does, and
// returns ctx's error without waiting for handlers, unless there is a
// [ServerOptions.Lifespan].
func (s *Server) Run(ctx context.Context, t Transport) error {
	ss, err := s.Connect(ctx, t)
	if err != nil {
		return err
	}
	err = ss.Wait()
	ss.life.await(cleanTime)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Connect serves one connection of t in the background. The session ends
// with ctx, too.
func (s *Server) Connect(ctx context.Context, t Transport) (*ServerSession, error) {
	scope, life, err := s.begin(ctx)
	if err != nil {
		if conn, failed := t.Connect(ctx); failed == nil { // the peer learns at once that nobody is there
			conn.Close()
		}
		return nil, err
	}
	conn, err := t.Connect(ctx)
	if err != nil {
		life.end()
		return nil, err
	}
	ss := s.newSession(context.WithoutCancel(scope)) // it is closed in order, not cut off
	if ss.life = life; life != nil {
		life.run = ss.core.runCleanup
		ss.OnClose(life.end) // the first, so that it runs last
	}
	ss.core.start(conn)
	for _, c := range []context.Context{ctx, scope} { // scope need be no child of ctx
		stop := context.AfterFunc(c, func() { ss.Close() })
		ss.OnClose(func() { stop() })
	}
	return ss, nil
}

// A lifespan is what [ServerOptions.Lifespan] opened, and the handlers that
// use it. nil is none.
type lifespan struct {
	close func()
	run   func(func()) // contains panics

	mu      sync.Mutex
	users   int  // handlers that run
	over    bool // no more may begin
	closed  bool
	waiting chan struct{} // closed when it is closed
}

// begin opens what the server's user has for a connection.
func (s *Server) begin(ctx context.Context) (context.Context, *lifespan, error) {
	if s.opts.Lifespan == nil {
		return ctx, nil, nil
	}
	scope, end, err := s.opts.Lifespan(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("mcp: Lifespan: %w", err)
	}
	if scope == nil {
		scope = ctx
	}
	if end == nil {
		end = func() {}
	}
	return scope, &lifespan{close: end, run: func(f func()) { f() }, waiting: make(chan struct{})}, nil
}

// enter reports whether a handler may begin; it must then leave.
func (l *lifespan) enter() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.users++
	}
	return !l.over
}

func (l *lifespan) leave() {
	if l != nil {
		l.mu.Lock()
		l.users--
		l.mu.Unlock()
		l.finish()
	}
}

// end lets no more handlers begin and closes once there are none. It does not
// wait for them: one of them may be who ends the session.
func (l *lifespan) end() {
	if l != nil {
		l.mu.Lock()
		l.over = true
		l.mu.Unlock()
		l.finish()
	}
}

func (l *lifespan) finish() {
	l.mu.Lock()
	last := l.over && l.users == 0 && !l.closed
	l.closed = l.closed || last
	l.mu.Unlock()
	if last {
		defer close(l.waiting)
		l.run(l.close)
	}
}

// await waits until it is closed, no longer than d.
func (l *lifespan) await(d time.Duration) {
	if l == nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.waiting:
	case <-t.C:
	}
}

func (s *Server) newSession(ctx context.Context) *ServerSession {
	all := &struct { // in one piece of memory
		ss   ServerSession
		core session
	}{ss: ServerSession{server: s}}
	ss := &all.ss
	ss.core = &all.core
	ss.core.init(ctx, ss, s.log)
	ss.core.stray = s.opts.Stray
	return ss
}

// initTime bounds how long a handler that asks waits for the client to say
// that it is initialized.
const initTime = 5 * time.Second

// awaitInitialized waits until the legacy client may be sent requests
// (2025-11-25 basic/lifecycle § Initialization).
func (ss *ServerSession) awaitInitialized(ctx context.Context) error {
	if ss.ready.Load() {
		return nil
	}
	t := time.NewTimer(initTime)
	defer t.Stop()
	select {
	case <-ss.begun.wait():
		return nil
	case <-ss.draining.wait(): // it says no more
		return ErrClosed
	case <-t.C:
		return errors.New("mcp: the client did not say that it is initialized")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxOpenPages is how many url elicitations of a session are kept in mind for
// their completion; the oldest are forgotten.
const maxOpenPages = 1000

// openPage notes a url elicitation of the session. Its id is unique within the
// server (2025-11-25 client/elicitation); the same client may be sent there
// again, until it is done.
func (ss *ServerSession) openPage(id string) error {
	s := ss.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch owner := s.pages[id]; {
	case owner == ss:
		return nil
	case owner != nil:
		return fmt.Errorf("elicitationId %q is in use", id)
	case ss.core.ctx.Err() != nil: // nobody would forget it
		return ErrClosed
	}
	if len(ss.pages) == maxOpenPages {
		delete(s.pages, ss.pages[0])
		ss.pages = ss.pages[1:]
	}
	s.pages[id] = ss
	ss.pages = append(ss.pages, id)
	return nil
}

// closePage forgets a url elicitation and reports whether it was this
// session's.
func (ss *ServerSession) closePage(id string) bool {
	s := ss.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages[id] != ss {
		return false
	}
	delete(s.pages, id)
	ss.pages = slices.DeleteFunc(ss.pages, func(open string) bool { return open == id })
	return true
}

// settle forgets a url elicitation that the user does not want, or, with a nil
// answer, may never have seen.
func (ss *ServerSession) settle(q InputRequest, answer json.RawMessage) {
	if q.Method != methodElicit {
		return
	}
	id, _ := stringValue(rawMember(q.Params, "elicitationId"))
	if action, _ := stringValue(rawMember(answer, "action")); id != "" && action != "accept" {
		ss.closePage(id)
	}
}

// ElicitationComplete tells the client that the user has done what a url
// elicitation asked for, by the id that the [ElicitParams] had. It exists at
// 2025-11-25 only; a client of 2026-07-28 asks again by itself. An id that was
// not given to this client, or that is complete, is an error.
func (ss *ServerSession) ElicitationComplete(ctx context.Context, id string) error {
	if !ss.closePage(id) {
		return fmt.Errorf("mcp: this client has no url elicitation %q", id)
	}
	if ss.core.out == nil {
		return fmt.Errorf("mcp: %s: no stream to the client", notifyElicitationComplete)
	}
	return ss.core.notify(ctx, ss.core.out, notifyElicitationComplete, &ElicitationCompleteParams{ElicitationID: id}, rev20251125)
}

// A ServerSession is one connection to a client. What a client of a revision
// before 2026-07-28 said of itself when it connected is kept here; a client of
// 2026-07-28 says it with every request, and handlers learn it from
// [Request].
type ServerSession struct {
	core   *session
	server *Server

	mu       sync.Mutex
	rev      *revision // negotiated by initialize; nil before
	client   *clientFacts
	level    LoggingLevel       // logging/setLevel
	declared ServerCapabilities // by initialize
	watcher  *watcher           // of the legacy session
	passing  bool               // it ends with its one request; constant

	ready   atomic.Bool // the legacy client said that it is initialized
	begun   latch       // open then
	pages   []string    // ids of open url elicitations, under the server's mu
	watchMu sync.Mutex
	watched map[string]bool // resources/subscribe

	logSecond          time.Time // when counting began; under mu, as the next two
	logged, logDropped int

	draining latch // open when listens have to end
	life     *lifespan
	listens  int           // subscriptions/listen requests that run, under mu
	quiet    chan struct{} // closed when there are none, if someone waits
}

// Close ends the session: subscriptions end with their result, other
// handlers lose their context, the connection is closed. It does not wait for
// handlers.
func (ss *ServerSession) Close() error {
	ss.drain()
	ss.awaitListens(flushTime)
	if ss.core.conn != nil {
		ss.core.conn.flushWithin(flushTime)
	}
	return ss.core.close(nil)
}

// Wait waits until the session has ended and returns why, nil when one of the
// sides closed it.
func (ss *ServerSession) Wait() error { return ss.core.wait() }

// OnClose registers f to run once when the session has ended, whoever ended it,
// with the connection closed; on a session that has ended f runs at once. What
// was registered last runs first. Close and Wait wait until all have run, but
// no longer than 5 seconds, and not when one of them is who calls. Panics are
// logged.
func (ss *ServerSession) OnClose(f func()) { ss.core.onClose(f) }

// metaFacts is clientFacts with the bytes that said it.
type metaFacts struct {
	rev        *revision
	info, caps []byte
	facts      clientFacts
}

// Client returns what the client calls itself; the zero value when it did not
// say. Do not base decisions on it (2026-07-28 basic § _meta).
func (r *Request) Client() Implementation {
	if r.client == nil {
		return Implementation{}
	}
	return r.client.info
}

// Capabilities returns what the client declared that it can do.
func (r *Request) Capabilities() ClientCapabilities {
	if r.client == nil {
		return ClientCapabilities{}
	}
	return r.client.caps
}

// admit resolves the revision of a message: a request whose _meta names a
// version is judged by itself, any other belongs to the session that
// initialize opened (2026-07-28 basic/versioning).
func (ss *ServerSession) admit(req *Request) *Error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	negotiated := ss.rev
	if req.Method == methodInitialize {
		if req.rev = negotiated; req.rev == nil {
			req.rev = rev20251125
		}
		return nil
	}
	if req.ID.IsZero() {
		if req.rev = negotiated; req.rev == nil {
			req.rev = rev20260728
		}
		req.client = ss.client
		if req.Method == notifyInitialized && negotiated != nil {
			if !ss.ready.Swap(true) {
				ss.begun.open()
			}
		}
		return nil
	}
	if req.params.version != nil && ss.server.modern() {
		version, ok := stringValue(req.params.version)
		if !ok {
			return Errorf(CodeInvalidParams, "params._meta[%q] must be a string", metaProtocolVersion)
		}
		if negotiated == nil || revisionOf(version) != negotiated {
			return ss.admitModern(req, version)
		}
	}
	if negotiated == nil {
		return ss.admitEarly(req)
	}
	req.rev, req.client = negotiated, ss.client
	return nil
}

// admitModern takes a request that says of itself what it needs: nothing of
// the connection counts (2026-07-28 basic § Statelessness).
func (ss *ServerSession) admitModern(req *Request, version string) *Error {
	rev := ss.server.revision(version)
	if rev == nil || !rev.modern {
		return ss.server.unsupported(version)
	}
	req.rev = rev
	if req.params.capabilities == nil {
		return missingMeta(metaClientCapabilities)
	}
	if l := req.params.logLevel; l != nil {
		if level, _ := stringValue(l); LoggingLevel(level).severity() < 0 {
			return Errorf(CodeInvalidParams, "params._meta[%q] is not a log level", metaLogLevel)
		}
	}
	last := ss.server.lastMeta.Load()
	if last == nil || last.rev != rev || string(last.caps) != string(req.params.capabilities) || string(last.info) != string(req.params.info) {
		last = &metaFacts{info: bytes.Clone(req.params.info), caps: bytes.Clone(req.params.capabilities), rev: rev}
		if err := decodeAt(last.caps, &last.facts.caps, rev, true); err != nil {
			return Errorf(CodeInvalidParams, "params._meta[%q]: %v", metaClientCapabilities, err)
		}
		if last.info != nil {
			if err := decodeAt(last.info, &last.facts.info, rev, true); err != nil {
				return Errorf(CodeInvalidParams, "params._meta[%q]: %v", metaClientInfo, err)
			}
		}
		ss.server.lastMeta.Store(last)
	}
	req.client = &last.facts
	return nil
}

// admitEarly judges a request without a version before initialize.
func (ss *ServerSession) admitEarly(req *Request) *Error {
	req.rev = rev20251125
	switch {
	case req.Method == methodPing:
		return nil
	case ss.server.modern() && (req.params.capabilities != nil ||
		methodDefined(req.Method, rev20260728, true) && !methodDefined(req.Method, rev20251125, true)):
		return missingMeta(metaProtocolVersion, metaClientCapabilities)
	case !ss.server.serves(req):
		return methodNotFound(req.Method)
	}
	return Errorf(CodeInvalidParams, "%s came before initialize, and without the _meta of %s", req.Method, Version20260728)
}

func missingMeta(keys ...string) *Error {
	return Errorf(CodeInvalidParams, "params._meta must have %q", keys)
}

func methodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "method not found: %s", method)
}

// revision returns the served revision of that name, nil if there is none.
func (s *Server) revision(version string) *revision {
	if rev := revisionOf(version); rev != nil && slices.Contains(s.revs, rev) {
		return rev
	}
	return nil
}

// modern reports whether the server serves a revision without initialize. One
// that does not takes the _meta of such a request for what earlier servers
// took it, so that the client falls back.
func (s *Server) modern() bool { return s.revs[len(s.revs)-1].modern }

// modernVersions lists the served revisions that need no initialize.
func (s *Server) modernVersions() []string {
	versions := []string{}
	for _, rev := range s.revs {
		if rev.modern {
			versions = append(versions, rev.version)
		}
	}
	return versions
}

func (s *Server) unsupported(requested string) *Error {
	return Errorf(CodeUnsupportedProtocolVersion, "Unsupported protocol version").withData(
		UnsupportedVersionData{Supported: s.modernVersions(), Requested: requested})
}

// inline keeps initialize in order with what follows it.
func (ss *ServerSession) inline(req *Request) bool { return req.Method == methodInitialize }

func (ss *ServerSession) mayAnswer() bool { return true }

func (ss *ServerSession) drain() { ss.draining.open() }

// listenEnded counts a subscriptions/listen request that is over.
func (ss *ServerSession) listenEnded() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.listens--; ss.listens == 0 && ss.quiet != nil {
		close(ss.quiet)
		ss.quiet = nil
	}
}

// awaitListens waits, within d, until no subscriptions/listen request runs.
func (ss *ServerSession) awaitListens(d time.Duration) {
	ss.mu.Lock()
	if ss.listens == 0 {
		ss.mu.Unlock()
		return
	}
	if ss.quiet == nil {
		ss.quiet = make(chan struct{})
	}
	quiet := ss.quiet
	ss.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-quiet:
	case <-t.C:
	case <-ss.core.ctx.Done():
	}
}

func (ss *ServerSession) ended() {
	ss.drain()
	ss.mu.Lock()
	w := ss.watcher
	ss.watcher = nil
	ss.mu.Unlock()
	ss.server.unwatch(w)
	ss.server.mu.RLock()
	open := len(ss.pages)
	ss.server.mu.RUnlock()
	if open == 0 {
		return
	}
	ss.server.mu.Lock()
	defer ss.server.mu.Unlock()
	for _, id := range ss.pages {
		delete(ss.server.pages, id)
	}
	ss.pages = nil
}

func (ss *ServerSession) handle(ctx context.Context, req *Request) (any, error) {
	switch req.Method { // for middleware; what serves the method judges it
	case methodToolsCall, methodPromptsGet:
		ss.server.mu.RLock()
		req.Name, _ = ss.server.tools.name(req.params.name)
		ss.server.mu.RUnlock()
		req.Arguments = req.params.arguments
	case methodResourcesRead, methodSubscribe, methodUnsubscribe:
		req.Name, _ = stringValue(req.params.uri)
	}
	if !ss.life.enter() {
		return nil, ErrClosed
	}
	defer ss.life.leave()
	result, err := ss.server.handler(ctx, req)
	if e := errorIn(err); e != nil && req.rev != rev20251125 && e.Code == CodeURLElicitationRequired {
		return nil, fmt.Errorf("code %d exists at %s only: %w", e.Code, Version20251125, errors.New(e.Message)) // of middleware
	}
	return result, err
}

// appendResult writes a result in the words of its revision.
func (ss *ServerSession) appendResult(dst []byte, req *Request, result any) ([]byte, error) {
	switch result := result.(type) {
	case encodedList:
		return append(slices.Grow(dst, len(result)+2), result...), nil // and for what ends the frame
	case *toolResult:
		return result.append(dst, req.rev, ss.server.stamp), nil
	}
	return ss.server.encodeResult(dst, req, result)
}

// encodeResult encodes a result with what the server adds to all of them.
func (s *Server) encodeResult(dst []byte, req *Request, result any) ([]byte, error) {
	st := stamp{serverInfo: s.stamp, cacheable: cacheable(req.Method)}
	if req.Method != methodResourcesRead { // which has hints of its own, or none
		st.ttlMs, st.cacheScope = s.opts.Cache.TTLMs, s.opts.Cache.CacheScope
	}
	return encodeResult(dst, result, req.rev, &st)
}

// cacheable reports whether the results of a method say how long they are
// good for (2026-07-28 server/utilities/caching).
func cacheable(method string) bool {
	switch method {
	case methodDiscover, methodToolsList, methodPromptsList, methodResourcesList, methodTemplatesList, methodResourcesRead:
		return true
	}
	return false
}

// Session returns the session that the request came on.
func (r *Request) Session() *ServerSession {
	ss, _ := r.session.side.(*ServerSession)
	return ss
}

// serverMethods are the methods of the protocol that a server answers.
var serverMethods = map[string]func(s *Server, ctx context.Context, req *Request) (any, error){
	methodInitialize:    (*Server).initialize,
	methodDiscover:      (*Server).discover,
	methodPing:          (*Server).ping,
	methodSetLevel:      (*Server).setLevel,
	methodToolsList:     (*Server).listTools,
	methodToolsCall:     (*Server).callTool,
	methodResourcesList: (*Server).listResources,
	methodTemplatesList: (*Server).listTemplates,
	methodResourcesRead: (*Server).readResource,
	methodPromptsList:   (*Server).listPrompts,
	methodPromptsGet:    (*Server).getPrompt,
	methodComplete:      (*Server).complete,
	methodSubscribe:     (*Server).subscribe,
	methodUnsubscribe:   (*Server).unsubscribe,
	methodListen:        (*Server).listen,
}

// serves reports whether the server answers the method of req at all.
func (s *Server) serves(req *Request) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.custom[req.Method] != nil {
		return true
	}
	if serverMethods[req.Method] == nil || !methodDefined(req.Method, req.rev, true) {
		return false
	}
	caps := s.capabilities()
	switch req.Method {
	case methodToolsList, methodToolsCall:
		return caps.Tools != nil
	case methodResourcesList, methodTemplatesList, methodResourcesRead:
		return caps.Resources != nil
	case methodPromptsList, methodPromptsGet:
		return caps.Prompts != nil
	case methodComplete:
		return s.opts.Complete != nil
	case methodSetLevel:
		return caps.Logging != nil
	case methodSubscribe, methodUnsubscribe:
		return caps.Resources != nil && caps.Resources.Subscribe
	}
	return true
}

// capabilities returns what the server declares: what it has, or had once, so
// that a list which has become empty can still be read. Under s.mu.
func (s *Server) capabilities() ServerCapabilities {
	if s.opts.Capabilities != nil {
		return *s.opts.Capabilities
	}
	caps := ServerCapabilities{Logging: &struct{}{}}
	if s.tools.next > 0 {
		caps.Tools = &ListCapability{ListChanged: true}
	}
	if s.prompts.next > 0 {
		caps.Prompts = &ListCapability{ListChanged: true}
	}
	if s.resources.next+s.templates.next > 0 {
		caps.Resources = &ResourcesCapability{ListChanged: true, Subscribe: true}
	}
	if s.opts.Complete != nil {
		caps.Completions = &struct{}{}
	}
	return caps
}

// dispatch is the innermost handler: it runs what is registered for the
// method, as often as questions to the client need.
func (s *Server) dispatch(ctx context.Context, req *Request) (any, error) {
	if req.ID.IsZero() {
		return nil, nil
	}
	if !req.params.isOf(req.Params) { // middleware has put others there
		var bad *Error
		if req.params, bad = scanParams(req.Params); bad != nil {
			return nil, bad
		}
	}
	if !s.serves(req) {
		return nil, methodNotFound(req.Method)
	}
	if mayAsk(req.Method) {
		return s.converse(ctx, req)
	}
	result, err := s.answer(ctx, req)
	return result, s.pagesRequired(req, err)
}

// answer runs what is registered for the method of req.
func (s *Server) answer(ctx context.Context, req *Request) (any, error) {
	s.mu.RLock()
	h := s.custom[req.Method]
	s.mu.RUnlock()
	if h != nil {
		return h(ctx, req)
	}
	return serverMethods[req.Method](s, ctx, req)
}

// withoutNews returns c without what needs a way to a client that asks for
// nothing.
func (c ServerCapabilities) withoutNews() ServerCapabilities {
	for _, list := range []**ListCapability{&c.Tools, &c.Prompts} {
		if *list != nil {
			quiet := **list
			quiet.ListChanged = false
			*list = &quiet
		}
	}
	if c.Resources != nil {
		quiet := *c.Resources
		quiet.ListChanged, quiet.Subscribe = false, false
		c.Resources = &quiet
	}
	return c
}

// initialize opens the session of a legacy client
// (2025-11-25 basic/lifecycle).
func (s *Server) initialize(_ context.Context, req *Request) (any, error) {
	ss := req.Session()
	var p InitializeParams
	if err := decodeAt(req.Params, &p, rev20251125, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	rev := s.revision(p.ProtocolVersion)
	if rev == nil || rev.modern {
		for _, known := range s.revs {
			if !known.modern {
				rev = known // the newest of them
			}
		}
	}
	if rev == nil || rev.modern {
		return nil, s.unsupported(p.ProtocolVersion)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.rev != nil {
		return nil, Errorf(CodeInvalidRequest, "the session is initialized already")
	}
	var known InitializeParams // without the capabilities that came later
	if err := decodeAt(req.Params, &known, rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	ss.rev, req.rev = rev, rev
	ss.client = &clientFacts{info: p.ClientInfo, caps: known.Capabilities}
	ss.core.mu.Lock()
	ss.core.batches = rev.batches
	ss.core.mu.Unlock()
	s.mu.RLock()
	ss.declared = s.capabilities()
	s.mu.RUnlock()
	if ss.passing {
		ss.declared = ss.declared.withoutNews()
	}
	s.watchSession(ss)
	ss.core.keepAlive(s.opts.KeepAlive)
	return &InitializeResult{
		ProtocolVersion: rev.version, Capabilities: ss.declared,
		ServerInfo: s.info, Instructions: s.opts.Instructions,
	}, nil
}

func (s *Server) discover(context.Context, *Request) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &DiscoverResult{
		SupportedVersions: s.modernVersions(), Capabilities: s.capabilities(), Instructions: s.opts.Instructions,
	}, nil
}

func (s *Server) ping(context.Context, *Request) (any, error) { return nil, nil }

func (s *Server) setLevel(_ context.Context, req *Request) (any, error) {
	var p SetLevelParams
	if err := decodeAt(req.Params, &p, req.rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	if p.Level.severity() < 0 {
		return nil, Errorf(CodeInvalidParams, "params.level is not a log level")
	}
	ss := req.Session()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.level = p.Level
	return nil, nil
}

// A registry holds what is registered under one kind of name, in the order of
// registration. A cursor is the number of an entry, so pages stay in step
// while the list changes.
type registry[T any] struct {
	list  []registered[T]
	index map[string]int // places in list
	next  int
	// first is the first page as each revision has it, encoded; nil when the
	// list has changed since. Set under a read lock of the server.
	first [5]atomic.Pointer[encodedList]
}

// An encodedList is the result of a list method, ready to be sent.
type encodedList []byte

type registered[T any] struct {
	name   string
	number int
	value  T
}

func (r *registry[T]) get(name string) (v T, ok bool) {
	if i, ok := r.index[name]; ok {
		return r.list[i].value, true
	}
	return v, false
}

// name returns the Go string of a JSON string: the one that is registered, if
// it is a name that is.
func (r *registry[T]) name(raw []byte) (name string, ok bool) {
	if len(raw) >= 2 && raw[0] == '"' {
		if i, ok := r.index[string(raw[1:len(raw)-1])]; ok {
			return r.list[i].name, true
		}
	}
	return stringValue(raw)
}

// put adds an entry, or replaces the one of that name where it stands.
func (r *registry[T]) put(name string, v T) {
	r.forget()
	if i, ok := r.index[name]; ok {
		r.list[i].value = v
		return
	}
	if r.index == nil {
		r.index = make(map[string]int)
	}
	r.next++
	r.index[name] = len(r.list)
	r.list = append(r.list, registered[T]{name, r.next, v})
}

// remove removes entries and reports whether there were any.
func (r *registry[T]) remove(names []string) bool {
	r.forget()
	before := len(r.list)
	r.list = slices.DeleteFunc(r.list, func(e registered[T]) bool { return slices.Contains(names, e.name) })
	clear(r.index)
	for i := range r.list {
		r.index[r.list[i].name] = i
	}
	return len(r.list) < before
}

func (r *registry[T]) forget() {
	for i := range r.first {
		r.first[i].Store(nil)
	}
}

// page returns the entries that follow a cursor, without those that shows
// holds back unless it is nil, and the cursor after them, nil at the end.
func (r *registry[T]) page(cursors *cursorKey, cursor *string, size int, shows func(name string) bool) (values []T, next *string, bad *Error) {
	after := 0
	if cursor != nil {
		if after = cursors.read(*cursor); after < 1 || after > r.next {
			return nil, nil, Errorf(CodeInvalidParams, "params.cursor is not one of this list's")
		}
	}
	for _, e := range r.list {
		switch {
		case e.number <= after || shows != nil && !shows(e.name):
			continue
		case len(values) == size:
			c := cursors.write(after)
			return values, &c, nil
		}
		values = append(values, e.value)
		after = e.number
	}
	return values, nil, nil
}

// A cursorKey writes cursors that nobody can read or make up: the number of
// the last entry of a page, hidden since it counts what a filter hides, and a
// code that proves that this server wrote it for this method.
type cursorKey struct {
	key    []byte
	method string
}

func (k *cursorKey) write(n int) string {
	code := k.code("number", binary.BigEndian.AppendUint64(nil, uint64(n)))
	text := binary.BigEndian.AppendUint64(nil, uint64(n)^k.mask(code))
	return base64.RawURLEncoding.EncodeToString(append(text, code...))
}

// read returns the number in a cursor, 0 if it is none of ours.
func (k *cursorKey) read(cursor string) int {
	raw, ok := decodeText(cursor)
	if !ok || len(raw) != 8+cursorCode {
		return 0
	}
	n := binary.BigEndian.Uint64(raw) ^ k.mask(raw[8:])
	if !hmac.Equal(raw[8:], k.code("number", binary.BigEndian.AppendUint64(nil, n))) {
		return 0
	}
	return int(n)
}

const cursorCode = 12 // bytes of the code

func (k *cursorKey) code(use string, text []byte) []byte {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(use + "\x00" + k.method + "\x00"))
	mac.Write(text)
	return mac.Sum(nil)[:cursorCode]
}

// mask is what hides a number. It depends on the code, and so on the number.
func (k *cursorKey) mask(code []byte) uint64 { return binary.BigEndian.Uint64(k.code("mask", code)) }

// list answers a list request. result makes the method's result of a page.
//
// Where all callers get the same first page and no middleware wants to see
// it, a call costs no more than a copy of its bytes.
func list[T any](s *Server, ctx context.Context, req *Request, r *registry[T], result func(page []T, next *string) any) (any, error) {
	var cursor *string
	if raw := rawMember(req.Params, "cursor"); raw != nil {
		text, ok := stringValue(raw)
		if !ok {
			return nil, Errorf(CodeInvalidParams, "params.cursor must be a string")
		}
		cursor = &text
	}
	pageOf := func(r *registry[T], shows func(name string) bool) (any, error) {
		values, next, bad := r.page(&cursorKey{s.seal.cursors, req.Method}, cursor, s.opts.PageSize, shows)
		if bad != nil {
			return nil, bad
		}
		return result(values, next), nil
	}
	s.mu.RLock()
	if s.opts.Filter != nil { // which may use the server
		now := registry[T]{list: slices.Clone(r.list), next: r.next}
		s.mu.RUnlock()
		return pageOf(&now, func(name string) bool { return s.opts.Filter(ctx, req, name) })
	}
	defer s.mu.RUnlock()
	if cursor != nil || s.wrapped {
		return pageOf(r, nil)
	}
	if first := r.first[req.rev.index].Load(); first != nil {
		return *first, nil
	}
	page, err := pageOf(r, nil)
	if err != nil {
		return nil, err
	}
	encoded, err := s.encodeResult(nil, req, page)
	if err != nil {
		return nil, err
	}
	first := encodedList(encoded)
	r.first[req.rev.index].Store(&first)
	return first, nil
}

// find returns what is registered under a name, unless it is hidden from who
// sent req.
func find[T any](s *Server, ctx context.Context, req *Request, r *registry[T], name string) (v T, ok bool) {
	s.mu.RLock()
	v, ok = r.get(name)
	s.mu.RUnlock()
	if ok && !s.shows(ctx, req, name) {
		var none T
		return none, false
	}
	return v, ok
}

// shows reports whether who sent req may see what has the name.
func (s *Server) shows(ctx context.Context, req *Request, name string) bool {
	return s.opts.Filter == nil || s.opts.Filter(ctx, req, name)
}

// A ToolHandler runs a tool. The arguments, req.Arguments, are a JSON object
// that fits the tool's input schema, with its defaults filled in. An error is
// reported to the client's model as the text of a result with isError, unless
// it is an [*Error], which is a protocol error.
type ToolHandler func(ctx context.Context, req *Request) (*CallToolResult, error)

// A toolRunner is a ToolHandler, or the function of a typed tool.
type toolRunner func(ctx context.Context, req *Request) (toolResult, error)

type toolEntry struct {
	tool    Tool
	handler toolRunner
	input   *Schema
	output  *Schema // nil without an output schema
	headers []headerParam
}

// AddTool registers a tool, or replaces the one of that name. The input schema must be
// an object schema with "type": "object" at its root. It panics if the tool
// has no name or breaks another rule of the protocol, or a schema is missing
// or wrong. A name that the protocol discourages is a warning of the logger.
// The function [AddTool] makes the schemas from Go types.
func (s *Server) AddTool(t Tool, h ToolHandler) {
	err := errNoHandler
	if h != nil {
		err = s.addTool(t, nil, func(ctx context.Context, req *Request) (toolResult, error) {
			result, err := h(ctx, req)
			return toolResult{full: cmp.Or(result, &CallToolResult{})}, err
		})
	}
	mustFit("AddTool", t.Name, err)
}

var errNoHandler = errors.New("a tool needs a name and a handler")

// addTool registers a tool; input, if not nil, is the compiled input schema.
func (s *Server) addTool(t Tool, input *Schema, h toolRunner) (err error) {
	if t.Name == "" || h == nil {
		return errNoHandler
	}
	warning, err := checkToolName(t.Name)
	if err = cmp.Or(err, checkDescribed(t.Icons, nil, t.Meta)); err != nil {
		return err
	}
	if warning != "" {
		s.log.Warn("mcp: "+warning, "tool", t.Name)
	}
	e := &toolEntry{tool: t, handler: h, input: input}
	if !isObjectSchema(t.InputSchema) {
		return errors.New(`the input schema must be an object with "type": "object"`)
	}
	if e.input == nil {
		if e.input, err = CompileSchema(t.InputSchema, nil); err != nil {
			return fmt.Errorf("input schema: %w", err)
		}
	}
	if e.headers, err = headerParams(t.InputSchema); err != nil {
		return fmt.Errorf("input schema: %w", err)
	}
	if t.OutputSchema != nil {
		if e.output, err = CompileSchema(t.OutputSchema, nil); err != nil {
			return fmt.Errorf("output schema: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools.put(t.Name, e)
	s.changed(notifyToolsChanged, "")
	return nil
}

// isObjectSchema reports whether a schema has "type": "object" at its root.
func isObjectSchema(schema json.RawMessage) bool {
	var typ []byte
	bad := scanMembers(schema, "schema", func(key []byte) *[]byte {
		if string(key) == "type" {
			return &typ
		}
		return nil
	})
	return bad == nil && string(typ) == `"object"`
}

// RemoveTools removes tools; names that are not registered are ignored.
func (s *Server) RemoveTools(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools.remove(names) {
		s.changed(notifyToolsChanged, "")
	}
}

func (s *Server) listTools(ctx context.Context, req *Request) (any, error) {
	return list(s, ctx, req, &s.tools, func(page []*toolEntry, next *string) any {
		result := &ListToolsResult{NextCursor: next, Tools: make([]Tool, len(page))}
		for i, e := range page {
			result.Tools[i] = e.tool
		}
		return result
	})
}

func (s *Server) callTool(ctx context.Context, req *Request) (any, error) {
	s.mu.RLock()
	name, ok := s.tools.name(req.params.name)
	s.mu.RUnlock()
	if req.Name = name; !ok {
		return nil, Errorf(CodeInvalidParams, "params.name must be a string")
	}
	e, ok := find(s, ctx, req, &s.tools, req.Name)
	if !ok {
		return nil, Errorf(CodeInvalidParams, "unknown tool: %s", req.Name)
	}
	if req.params.arguments != nil && req.params.arguments[0] != '{' {
		return nil, Errorf(CodeInvalidParams, "params.arguments must be an object")
	}
	if req.mirrored != nil {
		if bad := req.mirrored(e.headers, req.params.arguments); bad != nil {
			return nil, bad
		}
	}
	req.Arguments = e.input.applyDefaults(req.params.arguments)
	if err := e.input.Validate(req.Arguments); err != nil {
		return toolError(fmt.Errorf("invalid arguments: %w", err)), nil
	}
	result, err := e.handler(ctx, req)
	if err != nil {
		return toolFailed(err)
	}
	if bad := result.check(e.output); bad != nil {
		return nil, fmt.Errorf("the result of tool %s does not fit its output schema: %w", req.Name, bad)
	}
	if result.full == nil && !s.wrapped {
		return &result, nil
	}
	full := result.whole()
	s.checkEmbedded(req, full)
	return full, nil
}

// A toolResult is what a tool returned. Where nobody looks at it on its way
// out it need not be a [CallToolResult].
type toolResult struct {
	text       string          // one block of text, unless there is structured content
	structured json.RawMessage // the text is this JSON
	full       *CallToolResult // instead of both
}

// check checks structured content against the tool's output schema, if any.
func (r *toolResult) check(output *Schema) error {
	switch {
	case output == nil || r.full != nil && r.full.IsError:
		return nil
	case r.full != nil:
		return output.Validate(r.full.StructuredContent)
	}
	return output.Validate(r.structured)
}

// whole returns the result as middleware knows it.
func (r *toolResult) whole() *CallToolResult {
	switch {
	case r.full != nil:
		return r.full
	case r.structured != nil:
		return &CallToolResult{Content: []Content{Text(string(r.structured))}, StructuredContent: r.structured}
	}
	return &CallToolResult{Content: []Content{Text(r.text)}}
}

// append writes a result that is not full, as [encodeResult] writes whole.
func (r *toolResult) append(dst []byte, rev *revision, serverInfo []byte) []byte {
	dst = append(dst, '{')
	if rev.modern {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(dst, `"content":[{"type":"text","text":`...)
	if r.structured == nil {
		dst = append(appendString(dst, r.text), "}]"...)
	} else {
		dst = append(appendString(dst, string(r.structured)), "}]"...)
		if rev.modern || rev.atLeast(rev20250618) && r.structured[0] == '{' {
			dst = append(append(dst, `,"structuredContent":`...), r.structured...)
		}
	}
	if rev.modern && serverInfo != nil {
		dst = append(append(append(dst, `,"_meta":{"`+metaServerInfo+`":`...), serverInfo...), '}')
	}
	return append(dst, '}')
}

// toolFailed is what becomes of the error of a tool.
func toolFailed(err error) (any, error) {
	var protocol *Error
	var input *InputRequired
	var bad *badResult
	if errors.As(err, &protocol) || errors.As(err, &input) || errors.As(err, &bad) {
		return nil, err
	}
	return toolError(err), nil
}

// checkEmbedded warns once of a tool that embeds resources in a server that
// declares none (2026-07-28 server/tools § Embedded Resources).
func (s *Server) checkEmbedded(req *Request, result *CallToolResult) {
	if !slices.ContainsFunc(result.Content, func(c Content) bool { return c.Type == "resource" }) {
		return
	}
	s.mu.RLock()
	declared := s.capabilities().Resources != nil
	s.mu.RUnlock()
	if !declared && s.embeds.CompareAndSwap(false, true) {
		s.log.Warn("mcp: a tool embeds a resource, but the server does not declare resources: set ServerOptions.Capabilities or register some", "tool", req.Name)
	}
}

// A badResult is the error of a tool whose result cannot be sent. That is a
// fault of the server, of which a model need not know.
type badResult struct{ err error }

func (e *badResult) Error() string { return e.err.Error() }

// toolError is the result that tells the model what went wrong
// (2026-07-28 server/tools § Error Handling).
func toolError(err error) *CallToolResult {
	return &CallToolResult{Content: []Content{Text(err.Error())}, IsError: true}
}

// AddTool registers a tool whose arguments and result are Go values, or
// replaces the one of that name.
//
// The input schema is made from In unless t has one; In must encode to a JSON
// object. Arguments that do not fit never reach h: the client's model is told
// what is wrong. Out decides what the client gets: a string is text; a
// [Content] or []Content is content; a [*CallToolResult] is sent as it is;
// anything else is structured content with an output schema made from Out,
// and the same JSON as text. An error of h is a result with isError, unless it
// is an [*Error].
//
// It panics if the tool is wrong, as [Server.AddTool] does.
func AddTool[In, Out any](s *Server, t Tool, h func(ctx context.Context, req *Request, in In) (Out, error)) {
	check, err := completeSchemas(&t, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	if err == nil && h == nil { // which the function around h would hide
		err = errNoHandler
	}
	if err == nil {
		err = s.addTool(t, check, func(ctx context.Context, req *Request) (toolResult, error) {
			var in In
			if err := decodeArguments(req.Arguments, &in); err != nil {
				return toolResult{}, fmt.Errorf("invalid arguments: %w", err)
			}
			out, err := h(ctx, req, in)
			if err != nil {
				return toolResult{}, err
			}
			result, err := toolResultOf(&out)
			if err != nil {
				return toolResult{}, &badResult{err}
			}
			return result, nil
		})
	}
	mustFit("AddTool", t.Name, err)
}

// completeSchemas infers the schemas that a typed tool was not given. The
// checker it returns, if any, takes Go's nil for absent, too.
func completeSchemas(t *Tool, in, out reflect.Type) (check *Schema, err error) {
	if base := pointedAt(in); base.Kind() == reflect.Interface && base.NumMethod() > 0 {
		return nil, fmt.Errorf("the arguments of a tool are a JSON object, which the interface %v cannot hold", base)
	}
	if bad := unheard(out, true, make(map[unheardKey]bool)); bad != nil {
		return nil, fmt.Errorf("the result %v has values of %v in a map, where its MarshalJSON or MarshalText is not used: have pointers to it there", out, bad)
	}
	if t.InputSchema == nil {
		if t.InputSchema, check, err = argumentsSchema(in); err != nil {
			return nil, err
		}
	}
	if t.OutputSchema == nil && isStructured(out) {
		t.OutputSchema, err = schemaForType(out)
	}
	return check, err
}

func pointedAt(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

type unheardKey struct {
	t           reflect.Type
	addressable bool
}

// unheard returns a type within t that encodes itself by methods of its
// pointer, at a place where encoding/json cannot take its address and so
// writes its fields, of which big.Int has none: within a map.
func unheard(t reflect.Type, addressable bool, seen map[unheardKey]bool) reflect.Type {
	key := unheardKey{t, addressable}
	if seen[key] {
		return nil
	}
	seen[key] = true
	switch {
	case encodesItself(t):
		heard := addressable || t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
		if heard {
			return nil
		}
		return t
	case t.Kind() == reflect.Map:
		return unheard(t.Elem(), false, seen)
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		return unheard(t.Elem(), true, seen)
	case t.Kind() == reflect.Array:
		return unheard(t.Elem(), addressable, seen)
	case t.Kind() == reflect.Struct:
		for _, f := range jsonFields(t) {
			if bad := unheard(f.typ, addressable, seen); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// isStructured reports whether results of type t are structured content.
func isStructured(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[Content](), reflect.TypeFor[[]Content](), reflect.TypeFor[CallToolResult](), reflect.TypeFor[*CallToolResult]():
		return false
	}
	return t.Kind() != reflect.Interface
}

// toolResultOf makes the result of a typed tool from what its handler returned; out
// points to that.
func toolResultOf(out any) (toolResult, error) {
	switch out := out.(type) {
	case *string:
		return toolResult{text: *out}, nil
	case *Content:
		return toolResult{full: &CallToolResult{Content: []Content{*out}}}, nil
	case *[]Content:
		return toolResult{full: &CallToolResult{Content: *out}}, nil
	case *CallToolResult:
		return toolResult{full: out}, nil
	case **CallToolResult:
		return toolResult{full: cmp.Or(*out, &CallToolResult{})}, nil
	}
	value := reflect.ValueOf(out).Elem()
	switch {
	case value.Kind() != reflect.Interface:
	case value.IsNil():
		return toolResult{full: &CallToolResult{}}, nil
	default: // at an address, as below
		p := reflect.New(value.Elem().Type())
		p.Elem().Set(value.Elem())
		return toolResultOf(p.Interface())
	}
	// At its address, so that a MarshalJSON of the pointer, such as that of
	// big.Int, has its say, as it has in the schema.
	if value.Kind() == reflect.Pointer || value.Type() == reflect.TypeFor[json.RawMessage]() {
		out = value.Interface()
	}
	structured, err := encodeAt(nil, out, rev20260728)
	if err != nil {
		return toolResult{}, fmt.Errorf("encode the result: %w", err)
	}
	if bytes.Contains(structured, []byte("null")) {
		structured = appendWithoutNil(nil, &scanner{data: structured}, value.Type())
	}
	return toolResult{structured: structured}, nil
}

// appendWithoutNil copies JSON that was encoded from a value of type t, and
// writes for Go's nil what the schema of t promises: an empty array, object
// or string for a nil slice or map, and no member for a nil pointer.
func appendWithoutNil(dst []byte, s *scanner, t reflect.Type) []byte {
	t = pointedAt(t)
	null := s.peek() == 'n'
	switch kind := t.Kind(); {
	case encodesItself(t):
	case kind == reflect.Slice && null:
		s.skip()
		if isBytes(t) {
			return append(dst, `""`...)
		}
		return append(dst, "[]"...)
	case kind == reflect.Map && null:
		s.skip()
		return append(dst, "{}"...)
	case (kind == reflect.Slice || kind == reflect.Array) && s.peek() == '[':
		dst = append(dst, '[')
		s.open('[')
		for n := 0; s.more(']', n); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = appendWithoutNil(dst, s, t.Elem())
		}
		return append(dst, ']')
	case (kind == reflect.Map || kind == reflect.Struct) && s.peek() == '{':
		return appendMembersWithoutNil(dst, s, t)
	}
	return append(dst, s.skip()...)
}

func appendMembersWithoutNil(dst []byte, s *scanner, t reflect.Type) []byte {
	types := make(map[string]reflect.Type)
	if t.Kind() == reflect.Struct {
		for _, f := range jsonFields(t) {
			types[f.name] = f.typ
		}
	}
	dst = append(dst, '{')
	s.open('{')
	first := true
	for n := 0; s.more('}', n); n++ {
		key := string(s.key())
		member := types[key]
		if t.Kind() == reflect.Map {
			member = t.Elem()
		}
		switch {
		case member == nil: // of an embedded type with its own say
			dst = append(appendKey(dst, key, first), s.skip()...)
		case member.Kind() == reflect.Pointer && t.Kind() == reflect.Struct && s.peek() == 'n':
			s.skip()
			continue
		default:
			dst = appendWithoutNil(appendKey(dst, key, first), s, member)
		}
		first = false
	}
	return append(dst, '}')
}

func appendKey(dst []byte, key string, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return append(appendString(dst, key), ':')
}

// encodesItself reports whether a type has its own say in its JSON.
func encodesItself(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// A ResourceHandler reads a resource. req.Name is the URI; req.Vars holds
// what the template's variables stand for. A content without a URI gets the
// one that was asked for. [ResourceNotFound] says that there is none.
type ResourceHandler func(ctx context.Context, req *Request) (*ReadResourceResult, error)

type resourceEntry struct {
	resource Resource
	handler  ResourceHandler
}

type templateEntry struct {
	resource ResourceTemplate
	template *uriTemplate
	handler  ResourceHandler
}

// ResourceNotFound returns the error for a resource that does not exist.
func ResourceNotFound(uri string) *Error {
	return Errorf(CodeInvalidParams, "resource not found: %s", uri).withData(map[string]string{"uri": uri})
}

// AddResource registers a resource, or replaces the one of that URI. It
// panics if the resource has no name or its URI is not absolute, or if it
// breaks another rule of the protocol.
func (s *Server) AddResource(r Resource, h ResourceHandler) {
	err := checkDescribed(r.Icons, r.Annotations, r.Meta)
	if r.Name == "" || !absoluteURI(r.URI) || h == nil {
		err = errors.New("a resource needs a name, an absolute URI and a handler")
	}
	mustFit("AddResource", r.URI, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources.put(r.URI, &resourceEntry{r, h})
	s.changed(notifyResourcesChanged, "")
}

// AddResourceTemplate registers a family of resources, or replaces the one of
// that template (RFC 6570). It panics if the template has no name or cannot be
// parsed, or if it breaks another rule of the protocol.
func (s *Server) AddResourceTemplate(t ResourceTemplate, h ResourceHandler) {
	parsed, err := parseTemplate(t.URITemplate)
	if err == nil && (t.Name == "" || t.URITemplate == "" || h == nil) {
		err = errors.New("a resource template needs a name, a URI template and a handler")
	}
	mustFit("AddResourceTemplate", t.URITemplate, cmp.Or(err, checkDescribed(t.Icons, t.Annotations, t.Meta)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.templates.put(t.URITemplate, &templateEntry{t, parsed, h})
	s.changed(notifyResourcesChanged, "")
}

// RemoveResources removes resources by URI and templates by URI template.
func (s *Server) RemoveResources(uris ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.resources.remove(uris)
	if s.templates.remove(uris) || gone {
		s.changed(notifyResourcesChanged, "")
	}
}

// absoluteURI reports whether s starts with a scheme (RFC 3986 section 3.1)
// and holds no space or control character.
func absoluteURI(s string) bool {
	scheme := -1
	for i := range len(s) {
		c := s[i]
		switch {
		case c <= ' ' || c == 0x7F:
			return false
		case scheme > 0:
		case c == ':' && i > 0:
			scheme = i
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return scheme > 0
}

func (s *Server) listResources(ctx context.Context, req *Request) (any, error) {
	return list(s, ctx, req, &s.resources, func(page []*resourceEntry, next *string) any {
		result := &ListResourcesResult{NextCursor: next, Resources: make([]Resource, len(page))}
		for i, e := range page {
			result.Resources[i] = e.resource
		}
		return result
	})
}

func (s *Server) listTemplates(ctx context.Context, req *Request) (any, error) {
	return list(s, ctx, req, &s.templates, func(page []*templateEntry, next *string) any {
		result := &ListResourceTemplatesResult{NextCursor: next, ResourceTemplates: make([]ResourceTemplate, len(page))}
		for i, e := range page {
			result.ResourceTemplates[i] = e.resource
		}
		return result
	})
}

func (s *Server) readResource(ctx context.Context, req *Request) (any, error) {
	uri, ok := stringValue(req.params.uri)
	if !ok {
		return nil, Errorf(CodeInvalidParams, "params.uri must be a string")
	}
	if !absoluteURI(uri) {
		return nil, Errorf(CodeInvalidParams, "params.uri must be an absolute URI")
	}
	req.Name = uri
	h, mimeType := s.resource(ctx, req, uri)
	if h == nil {
		return nil, ResourceNotFound(uri)
	}
	result, err := h(ctx, req)
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, ResourceNotFound(uri)
	}
	if !validScope(result.CacheScope) {
		return nil, fmt.Errorf("the result of reading %s has the cache scope %q", uri, result.CacheScope)
	}
	copied := *result
	copied.Contents = slices.Clone(result.Contents)
	for i := range copied.Contents {
		c := &copied.Contents[i]
		if c.URI == "" {
			c.URI = uri
		}
		if c.MIMEType == "" {
			c.MIMEType = mimeType
		}
	}
	return &copied, nil
}

// resource finds who reads a URI: a resource of exactly that URI, else the
// first template that matches.
func (s *Server) resource(ctx context.Context, req *Request, uri string) (h ResourceHandler, mimeType string) {
	if e, ok := find(s, ctx, req, &s.resources, uri); ok {
		return e.handler, e.resource.MIMEType
	}
	s.mu.RLock()
	templates := s.templates.list
	if s.opts.Filter != nil { // which may use the server
		templates = slices.Clone(templates)
		s.mu.RUnlock()
	} else {
		defer s.mu.RUnlock()
	}
	for _, e := range templates {
		if vars, ok := e.value.template.match(uri); ok && s.shows(ctx, req, e.name) {
			req.Vars = vars
			return e.value.handler, e.value.resource.MIMEType
		}
	}
	return nil, ""
}

// maxFileSize is how large a file [FileHandler] reads, in bytes.
const maxFileSize = 16 << 20

// FileHandler returns a handler that reads files of root, for a resource or a
// template alike. base is the URI of root's folder, such as
// "file:///project/"; what follows it in the URI that is asked for, with its
// escapes decoded once, is the path within root.
//
// What leaves root, by dots, escapes or symbolic links, is not found, nor is
// anything but a regular file. A file of UTF-8 without zero bytes is text,
// another one a blob. Its type is told from the name, else it is the one that
// the resource was registered with. A file of more than 16 MiB is an error.
// root must stay open while the server runs. It panics if root is nil.
func FileHandler(root *os.Root, base string) ResourceHandler {
	if root == nil {
		panic("mcp: FileHandler: root is nil")
	}
	base = strings.TrimSuffix(base, "/") + "/"
	return func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		rest, under := strings.CutPrefix(req.Name, base)
		path, ok := uriDecode(rest)
		if !under || !ok || path == "" || unsafePath(path) {
			return nil, ResourceNotFound(req.Name)
		}
		local, err := filepath.Localize(path) // nor a backslash or a device on Windows
		if err != nil {
			return nil, ResourceNotFound(req.Name)
		}
		data, found, err := readFile(root, local)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, ResourceNotFound(req.Name)
		}
		contents := ResourceContents{URI: req.Name, MIMEType: mime.TypeByExtension(filepath.Ext(local))}
		if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
			contents.Text = string(data)
		} else {
			contents.Blob = data
		}
		return &ReadResourceResult{Contents: []ResourceContents{contents}}, nil
	}
}

// readFile reads a regular file. What cannot be opened is not found, for
// whatever reason: the client learns nothing of what lies outside.
func readFile(root *os.Root, path string) (data []byte, found bool, err error) {
	info, err := root.Stat(path) // first: to open a pipe would wait
	if err != nil || !info.Mode().IsRegular() {
		return nil, false, nil
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, false, nil
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(data) > maxFileSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFileSize)
	}
	return data, true, err
}

// A PromptHandler makes the messages of a prompt. req.Vars holds the
// arguments; those that the prompt requires are there.
type PromptHandler func(ctx context.Context, req *Request) (*GetPromptResult, error)

type promptEntry struct {
	prompt  Prompt
	handler PromptHandler
}

// AddPrompt registers a prompt, or replaces the one of that name. It panics
// if the prompt has no name or breaks another rule of the protocol.
func (s *Server) AddPrompt(p Prompt, h PromptHandler) {
	err := checkDescribed(p.Icons, nil, p.Meta)
	if p.Name == "" || h == nil {
		err = errors.New("a prompt needs a name and a handler")
	}
	mustFit("AddPrompt", p.Name, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts.put(p.Name, &promptEntry{p, h})
	s.changed(notifyPromptsChanged, "")
}

// RemovePrompts removes prompts; names that are not registered are ignored.
func (s *Server) RemovePrompts(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompts.remove(names) {
		s.changed(notifyPromptsChanged, "")
	}
}

func (s *Server) listPrompts(ctx context.Context, req *Request) (any, error) {
	return list(s, ctx, req, &s.prompts, func(page []*promptEntry, next *string) any {
		result := &ListPromptsResult{NextCursor: next, Prompts: make([]Prompt, len(page))}
		for i, e := range page {
			result.Prompts[i] = e.prompt
		}
		return result
	})
}

func (s *Server) getPrompt(ctx context.Context, req *Request) (any, error) {
	var p GetPromptParams
	if err := decodeAt(req.Params, &p, req.rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	req.Name, req.Vars = p.Name, p.Arguments
	e, ok := find(s, ctx, req, &s.prompts, p.Name)
	if !ok {
		return nil, Errorf(CodeInvalidParams, "unknown prompt: %s", p.Name)
	}
	for _, a := range e.prompt.Arguments {
		if _, ok := p.Arguments[a.Name]; a.Required && !ok {
			return nil, Errorf(CodeInvalidParams, "prompt %s needs the argument %s", p.Name, a.Name)
		}
	}
	return e.handler(ctx, req)
}

// maxCompletions is how many values a completion has at most
// (2026-07-28 server/utilities/completion).
const maxCompletions = 100

func (s *Server) complete(ctx context.Context, req *Request) (any, error) {
	var p CompleteParams
	if err := decodeAt(req.Params, &p, req.rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	if bad := s.checkReference(ctx, req, &p.Ref); bad != nil {
		return nil, bad
	}
	result, err := s.opts.Complete(ctx, req, &p)
	if err != nil || result == nil || len(result.Completion.Values) <= maxCompletions {
		if result == nil {
			result = &CompleteResult{}
		}
		return result, err
	}
	cut := *result
	if cut.Completion.Total == nil {
		total := int64(len(cut.Completion.Values))
		cut.Completion.Total = &total
	}
	cut.Completion.Values, cut.Completion.HasMore = cut.Completion.Values[:maxCompletions], true
	return &cut, nil
}

// checkReference refuses a completion for a prompt or template that is not
// there.
func (s *Server) checkReference(ctx context.Context, req *Request, ref *CompleteReference) *Error {
	switch ref.Type {
	case "ref/prompt":
		if _, ok := find(s, ctx, req, &s.prompts, ref.Name); !ok {
			return Errorf(CodeInvalidParams, "unknown prompt: %s", ref.Name)
		}
	case "ref/resource":
		_, isTemplate := find(s, ctx, req, &s.templates, ref.URI)
		if _, ok := find(s, ctx, req, &s.resources, ref.URI); !ok && !isTemplate {
			return Errorf(CodeInvalidParams, "unknown resource template: %s", ref.URI)
		}
	default:
		return Errorf(CodeInvalidParams, `params.ref.type must be "ref/prompt" or "ref/resource"`)
	}
	return nil
}

// mayAsk reports whether a method may be answered with questions
// (2026-07-28 basic/patterns/mrtr).
func mayAsk(method string) bool {
	return method == methodToolsCall || method == methodPromptsGet || method == methodResourcesRead
}

// InputRequired is the error by which a handler says that it needs answers
// from the client before it can go on. [Request.Elicit] and its siblings
// return it, and a handler passes it up like any other error. It may be
// returned directly, too; the answers are then found by [Request.Ask] when
// the handler runs again.
type InputRequired struct {
	// Requests are the questions, by keys of the handler's choice. There may
	// be none when State is set: the client then just tries again.
	Requests InputRequests
	// State, when not nil, replaces what [Request.State] returns next time.
	State json.RawMessage
}

// Error says that input is required, and what a handler must do with it.
func (e *InputRequired) Error() string {
	return "mcp: input required: the handler must return this error, as it is or wrapped"
}

// converse runs a handler until it needs no more input. A modern client gets
// the questions as the result and asks again with the answers; a legacy
// client is asked while the request waits.
func (s *Server) converse(ctx context.Context, req *Request) (any, error) {
	req.asks = true
	if req.rev.modern {
		if bad := s.resume(req); bad != nil {
			return nil, bad
		}
	}
	for {
		result, err := s.answer(ctx, req)
		if err == nil {
			return result, nil
		}
		err = s.pagesRequired(req, err)
		var refused *refusedError
		if errors.As(err, &refused) {
			if req.Method == methodToolsCall {
				return toolError(err), nil
			}
			return nil, Errorf(CodeInternalError, "%v", err)
		}
		var need *InputRequired
		if !errors.As(err, &need) {
			return result, err
		}
		known := req.known()
		if need.State != nil {
			known.state = need.State
		}
		if known.count++; known.count > s.opts.MaxRounds {
			return nil, Errorf(CodeInternalError, "the request asked for input too often")
		}
		if req.rev.modern {
			return s.inputRequired(req, need)
		}
		if _, err := req.askNow(ctx, need.Requests); err != nil {
			return nil, err
		}
	}
}

// known returns what the request knows of the questions asked on its behalf.
func (r *Request) known() *rounds {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rounds == nil {
		r.rounds = &rounds{answers: make(InputResponses)}
	}
	return r.rounds
}

// answerTo returns the answer to a question asked before, nil if there is none.
func (r *Request) answerTo(key string) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rounds == nil {
		return nil
	}
	return r.rounds.answers[key]
}

// Ask asks the client several questions at once and returns the answers by
// key.
//
// How depends on the client, and a handler need not know: a client of a
// revision before 2026-07-28 is asked while Ask waits. To a modern client the
// questions go as the result of the request: Ask returns an [*InputRequired],
// which the handler must pass up; when the client sends the request again
// with the answers, the handler runs again from the top, and Ask returns what
// was answered. So what a handler does before it asks may happen more than
// once, and keys must be the same each time it runs.
//
// A question that needs a capability the client does not have is an error, and
// so is one that the client answers with an error: [errors.Is] compares its
// code with that of an [*Error].
func (r *Request) Ask(ctx context.Context, questions InputRequests) (InputResponses, error) {
	answers, open := make(InputResponses), make(InputRequests)
	for key, q := range questions {
		if answer := r.answerTo(key); answer != nil {
			answers[key] = answer
			continue
		}
		open[key] = q
	}
	var err error
	switch {
	case len(open) == 0:
	case !r.rev.modern:
		var live InputResponses
		live, err = r.askNow(ctx, open)
		maps.Copy(answers, live)
	case !r.asks:
		return nil, fmt.Errorf("mcp: %s must not ask the client for input", r.Method)
	default:
		if open, err = r.prepare(open); err != nil {
			return nil, err
		}
		return nil, &InputRequired{Requests: open}
	}
	for key, answer := range answers {
		if err := checkAnswer(questions[key], answer, r.rev); err != nil {
			return nil, r.badAnswer(key, err)
		}
	}
	return answers, err
}

// askNow sends questions to a legacy client, all at once, on the stream of
// the request that they belong to, and waits for the answers.
func (r *Request) askNow(ctx context.Context, questions InputRequests) (InputResponses, error) {
	type reply struct {
		key    string
		answer json.RawMessage
		err    error
	}
	if err := r.Session().awaitInitialized(ctx); err != nil {
		return nil, err
	}
	questions, err := r.prepare(questions)
	if err != nil {
		return nil, err
	}
	replies := make(chan reply, len(questions))
	for key, q := range questions {
		go func() {
			answer, err := r.session.call(ctx, r.out, callSpec{method: q.Method, params: q.Params})
			replies <- reply{key, answer, err}
		}()
	}
	answers := make(InputResponses)
	var failed error
	for range questions {
		a := <-replies
		var peer *Error
		if errors.As(a.err, &peer) {
			a.err = &askError{peer}
		}
		if a.err != nil {
			failed = a.err
			r.Session().settle(questions[a.key], nil)
			continue
		}
		answers[a.key] = a.answer
		r.Session().settle(questions[a.key], a.answer)
		if r.asks {
			known := r.known()
			r.mu.Lock()
			known.answers[a.key] = a.answer
			r.mu.Unlock()
		}
	}
	return answers, failed
}

// An askError is the error that a client answered a question with. It is no
// [*Error] itself: passed up, it would be this server's answer to the request
// that the question was asked for, and "method not found" would be said of
// tools/call.
type askError struct{ peer *Error }

func (e *askError) Error() string { return "the client answered: " + e.peer.Error() }

func (e *askError) Is(target error) bool { return e.peer.Is(target) }

// prepare returns questions as the client's revision has them, and an error if
// one must not be sent: it breaks a rule, or the client did not declare that it
// can answer it.
func (r *Request) prepare(questions InputRequests) (InputRequests, error) {
	ready := make(InputRequests, len(questions))
	for key, q := range questions {
		params, err := r.questionParams(q)
		if err != nil {
			return nil, err
		}
		ready[key] = InputRequest{q.Method, params}
	}
	return ready, nil
}

func (r *Request) questionParams(q InputRequest) (json.RawMessage, error) {
	asked := methodDefined(q.Method, r.rev, false)
	switch q.Method {
	case methodElicit, methodCreateMessage, methodRootsList: // all there are at 2026-07-28
		asked = asked || r.rev.modern
	}
	if !asked {
		return nil, fmt.Errorf("mcp: a client of protocol version %s cannot be asked for %s", r.rev.version, q.Method)
	}
	if missing := lacking(r.Capabilities(), q); missing != nil {
		if r.rev.modern {
			return nil, missingCapability(*missing)
		}
		caps, _ := encodeAt(nil, missing, rev20251125) // which has all that any has
		return nil, fmt.Errorf("the client did not declare %s, which %s needs", caps, q.Method)
	}
	var params json.RawMessage
	var err error
	switch q.Method {
	case methodElicit:
		params, err = r.elicitation(q.Params)
	case methodCreateMessage:
		params, err = r.sampling(q.Params)
	default:
		if q.Params != nil {
			params, err = appendRaw(nil, q.Params)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("mcp: %s: %w", q.Method, err)
	}
	return params, nil
}

// elicitation checks a question to the user and returns its params as the
// client's revision has them.
func (r *Request) elicitation(raw json.RawMessage) (json.RawMessage, error) {
	var p ElicitParams
	if err := decodeAt(raw, &p, rev20251125, false); err != nil { // which has all that any has
		return nil, err
	}
	warning, err := checkElicit(&p, r.rev)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		r.Session().server.log.Warn("mcp: "+warning, "method", r.Method, "name", r.Name)
	}
	if p.variant() == "url" && r.rev == rev20251125 {
		if p.ElicitationID == "" {
			p.ElicitationID = randomText()
		}
		if err := r.Session().openPage(p.ElicitationID); err != nil {
			return nil, err
		}
	}
	return encodeAt(nil, &p, r.rev)
}

// checkElicit says which rule a question to the user breaks, naming the
// member, or warns of what is discouraged (2026-07-28 client/elicitation).
func checkElicit(p *ElicitParams, rev *revision) (warning string, err error) {
	switch {
	case p.Message == "":
		return "", errors.New("message must say why the user is asked")
	case p.Mode != "" && p.Mode != "form" && p.Mode != "url":
		return "", fmt.Errorf("mode %q is neither form nor url", p.Mode)
	case p.variant() == "url":
		return checkPage(p.URL)
	case p.RequestedSchema == nil: // a form without fields: yes or no
		return "", nil
	}
	return "", checkForm(p.RequestedSchema, rev)
}

// checkPage judges the address of a page that the user is sent to.
func checkPage(address string) (warning string, err error) {
	u, err := url.Parse(address)
	if err != nil || !absoluteURI(address) || u.Host == "" && (u.Scheme == "http" || u.Scheme == "https") {
		return "", fmt.Errorf("url %q is not a valid absolute URL", address)
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	loopback := ip.IsLoopback() || u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost")
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback) {
		return "a url elicitation should use https: " + u.Scheme + "://" + u.Host, nil
	}
	return "", nil
}

// What a field of a form may have, by its type, since a client must be able to
// show it (2026-07-28 client/elicitation § Requested Schema). A pattern is in
// no definition but in an example of 2025-11-25.
var formMembers = map[string][]string{
	"string":  {"minLength", "maxLength", "pattern", "format", "enum", "enumNames", "oneOf"},
	"number":  {"minimum", "maximum"},
	"integer": {"minimum", "maximum"},
	"boolean": {},
	"array":   {"minItems", "maxItems", "items"},
}

// checkForm says which rule a requested schema breaks.
func checkForm(schema json.RawMessage, rev *revision) error {
	if _, err := CompileSchema(schema, nil); err != nil {
		return fmt.Errorf("requestedSchema: %s", strings.TrimPrefix(err.Error(), "mcp: "))
	}
	if !isObjectSchema(schema) {
		return errors.New(`requestedSchema must have "type": "object"`)
	}
	var root, fields map[string]json.RawMessage
	json.Unmarshal(schema, &root) // a compiled schema is well formed, and so are its members
	if root["properties"] != nil {
		json.Unmarshal(root["properties"], &fields)
	}
	var required []string
	if root["required"] != nil {
		json.Unmarshal(root["required"], &required)
	}
	for _, name := range required {
		if fields[name] == nil {
			return fmt.Errorf("requestedSchema.required: there is no property %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := checkField(fields[name], rev); err != nil {
			return fmt.Errorf("requestedSchema.properties.%s%w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(root)) {
		nested := name == "additionalProperties" && root[name][0] == '{'
		if nested || !slices.Contains([]string{"$schema", "type", "title", "description", "properties", "required", "additionalProperties"}, name) {
			return fmt.Errorf("requestedSchema.%s: a form is nothing but properties", name)
		}
	}
	return nil
}

// checkField says which rule one field of a form breaks.
func checkField(raw json.RawMessage, rev *revision) error {
	var field struct {
		Type, Format string
		Items        map[string]json.RawMessage
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(raw, &field) != nil || formMembers[field.Type] == nil || field.Type == "array" && !rev.atLeast(rev20251125) {
		return errors.New(" must have one type: string, number, integer or boolean, or since 2025-11-25 array")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains([]string{"type", "title", "description", "default"}, name) && !slices.Contains(formMembers[field.Type], name) {
			return fmt.Errorf(".%s is not for a form's field of type %s", name, field.Type)
		}
	}
	if f := members["format"]; f != nil && !slices.Contains([]string{"email", "uri", "date", "date-time"}, field.Format) {
		return fmt.Errorf(".format %s must be email, uri, date or date-time", f)
	}
	if members["oneOf"] != nil && !rev.atLeast(rev20251125) {
		return errors.New(".oneOf is there since 2025-11-25; before, enum and enumNames")
	}
	if err := checkChoices(members["enum"], members["oneOf"]); err != nil {
		return err
	}
	if field.Type != "array" {
		return nil
	}
	for name := range field.Items {
		if name != "type" && name != "enum" && name != "anyOf" {
			return fmt.Errorf(".items.%s: an array in a form is a choice of strings", name)
		}
	}
	if enum := field.Items["enum"]; (enum == nil) == (field.Items["anyOf"] == nil) || enum != nil && string(field.Items["type"]) != `"string"` {
		return errors.New(`.items must have "type": "string" and enum, or anyOf`)
	}
	return checkChoices(field.Items["enum"], field.Items["anyOf"])
}

// checkChoices checks the strings to choose from: plain, or with titles.
func checkChoices(enum, titled json.RawMessage) error {
	var values []string
	if enum != nil && json.Unmarshal(enum, &values) != nil {
		return errors.New(": the values of an enum must be strings")
	}
	var choices []map[string]*string
	if titled != nil && json.Unmarshal(titled, &choices) != nil {
		return errors.New(": each choice must be an object with the strings const and title")
	}
	for _, c := range choices {
		if len(c) != 2 || c["const"] == nil || c["title"] == nil {
			return errors.New(": each choice must be an object with the strings const and title")
		}
	}
	return nil
}

// sampling checks a question to the model and returns its params as the
// client's revision has them.
func (r *Request) sampling(raw json.RawMessage) (json.RawMessage, error) {
	var p CreateMessageParams
	if err := decodeAt(raw, &p, rev20251125, false); err != nil { // which has all that any has
		return nil, err
	}
	if err := checkSampling(&p); err != nil {
		return nil, err
	}
	// What the client could not follow is left out, as it would leave it out
	// itself (2026-07-28 client/sampling § Capabilities).
	caps := r.Capabilities().Sampling
	if r.rev.atLeast(rev20251125) && (caps == nil || caps.Context == nil) && p.IncludeContext != "none" {
		p.IncludeContext = ""
	}
	return encodeAt(nil, &p, r.rev)
}

// checkSampling says which rule a question to the model breaks, naming the
// member (2026-07-28 client/sampling).
func checkSampling(p *CreateMessageParams) error {
	for i, m := range p.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return fmt.Errorf("messages[%d].role %q is neither user nor assistant", i, m.Role)
		case len(m.Content) == 0:
			return fmt.Errorf("messages[%d].content must have a block", i)
		}
		for j := range m.Content {
			if err := checkTurn(&m.Content[j], m.Role); err != nil {
				return fmt.Errorf("messages[%d].content[%d]: %w", i, j, err)
			}
		}
	}
	if err := checkToolResults(p.Messages); err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	switch p.IncludeContext {
	case "", "none", "thisServer", "allServers":
	default:
		return fmt.Errorf("includeContext %q is none of none, thisServer and allServers", p.IncludeContext)
	}
	if c := p.ToolChoice; c != nil && !slices.Contains([]string{"", "auto", "required", "none"}, c.Mode) {
		return fmt.Errorf("toolChoice.mode %q is none of auto, required and none", c.Mode)
	}
	if w := p.ModelPreferences; w != nil {
		for _, f := range []*float64{w.CostPriority, w.SpeedPriority, w.IntelligencePriority} {
			if f != nil && !(*f >= 0 && *f <= 1) {
				return fmt.Errorf("modelPreferences: priority %v is not between 0 and 1", *f)
			}
		}
	}
	return checkToolOutputs(p)
}

// checkTurn says which rule a block of a message to or from a model breaks.
func checkTurn(c *Content, role Role) error {
	switch c.Type {
	case "text":
	case "image", "audio":
		if c.MIMEType == "" {
			return fmt.Errorf("mimeType of %s is missing", c.Type)
		}
	case "tool_use":
		if role != "assistant" || c.ID == "" || c.Name == "" {
			return errors.New("tool_use belongs to the assistant, and has an id and a name")
		}
	case "tool_result":
		if role != "user" || c.ToolUseID == "" {
			return errors.New("tool_result belongs to the user, and has a toolUseId")
		}
	default:
		return fmt.Errorf("type %q is not for a model", c.Type)
	}
	return nil
}

// checkToolOutputs checks structured results of tools against the schemas that
// the same question gives for them.
func checkToolOutputs(p *CreateMessageParams) error {
	tool := make(map[string]string) // by the id of its use
	for i, m := range p.Messages {
		for _, c := range m.Content {
			if c.Type == "tool_use" {
				tool[c.ID] = c.Name
			}
			at := slices.IndexFunc(p.Tools, func(t Tool) bool { return t.Name == tool[c.ToolUseID] })
			if c.Type != "tool_result" || c.StructuredContent == nil || c.IsError || at < 0 || p.Tools[at].OutputSchema == nil {
				continue
			}
			schema, err := CompileSchema(p.Tools[at].OutputSchema, nil)
			if err == nil {
				err = schema.Validate(c.StructuredContent)
			}
			if err != nil {
				return fmt.Errorf("messages[%d]: the result of %s and its outputSchema: %w", i, p.Tools[at].Name, err)
			}
		}
	}
	return nil
}

// checkAnswer says why an answer does not fit its question.
func checkAnswer(q InputRequest, answer json.RawMessage, rev *revision) error {
	if !hasShape(answer, "object") {
		return errors.New("must be an object")
	}
	switch q.Method {
	case methodElicit:
		return checkElicited(q.Params, answer, rev)
	case methodCreateMessage:
		var result CreateMessageResult
		if err := decodeAt(answer, &result, rev, false); err != nil {
			return err
		}
		if result.Role != "assistant" && result.Role != "user" {
			return errors.New("role must be assistant or user")
		}
		if len(result.Content) == 0 {
			return errors.New("content must have a block")
		}
		for i := range result.Content {
			if err := checkTurn(&result.Content[i], result.Role); err != nil {
				return fmt.Errorf("content[%d]: %w", i, err)
			}
		}
	case methodRootsList:
		var result ListRootsResult
		if err := decodeAt(answer, &result, rev, false); err != nil {
			return err
		}
		var listed []json.RawMessage // null elements, too, which decoding drops
		if json.Unmarshal(rawMember(answer, "roots"), &listed) != nil || listed == nil || len(listed) != len(result.Roots) ||
			slices.ContainsFunc(result.Roots, func(r Root) bool { return r.URI == "" }) {
			return errors.New("roots must be an array of objects with a uri")
		}
	}
	return nil
}

// checkElicited checks what the user is said to have answered: what the form
// asked for, in the form that it asked for.
func checkElicited(params, answer json.RawMessage, rev *revision) error {
	var p ElicitParams
	var result ElicitResult
	if err := decodeAt(answer, &result, rev, false); err != nil {
		return err
	}
	switch result.Action {
	case "accept":
	case "decline", "cancel":
		return nil
	default:
		return errors.New("action must be accept, decline or cancel")
	}
	if err := decodeAt(params, &p, rev20251125, false); err != nil || p.variant() == "url" || p.RequestedSchema == nil {
		return err
	}
	schema, err := CompileSchema(p.RequestedSchema, &SchemaOptions{AssertFormat: true})
	if err != nil {
		return fmt.Errorf("requestedSchema: %w", err)
	}
	content := result.Content
	if content == nil { // of a form without a field filled in
		content = json.RawMessage("{}")
	}
	return schema.Validate(content)
}

// lacking returns the capabilities that a question needs and the client did
// not declare; nil if there are none.
func lacking(caps ClientCapabilities, q InputRequest) *ClientCapabilities {
	switch q.Method {
	case methodElicit:
		var p ElicitParams
		decodeAt(q.Params, &p, rev20260728, false)
		have := caps.Elicitation
		if p.Mode == "url" {
			if have == nil || have.URL == nil {
				return &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
			}
		} else if have == nil || have.Form == nil && have.URL != nil { // {} means form
			return &ClientCapabilities{Elicitation: &ElicitationCapability{Form: &struct{}{}}}
		}
	case methodCreateMessage:
		var p CreateMessageParams
		decodeAt(q.Params, &p, rev20260728, false)
		withTools := p.Tools != nil || p.ToolChoice != nil
		switch {
		case caps.Sampling == nil && !withTools:
			return &ClientCapabilities{Sampling: &SamplingCapability{}}
		case withTools && (caps.Sampling == nil || caps.Sampling.Tools == nil):
			return &ClientCapabilities{Sampling: &SamplingCapability{Tools: &struct{}{}}}
		}
	case methodRootsList:
		if caps.Roots == nil {
			return &ClientCapabilities{Roots: &RootsCapability{}}
		}
	}
	return nil
}

// missingCapability is the answer to a request that cannot be served without
// what the client did not declare.
func missingCapability(caps ClientCapabilities) *Error {
	e := Errorf(CodeMissingClientCapability, "missing required client capability")
	e.Data, _ = encodeAt(nil, &MissingCapabilityData{RequiredCapabilities: caps}, rev20260728)
	return e
}

// RequireCapability returns nil if the client declared all of want, and
// otherwise the error to return to it.
func (r *Request) RequireCapability(want ClientCapabilities) error {
	missing := notDeclared(want, r.Capabilities())
	if missing == nil {
		return nil
	}
	if !r.rev.modern {
		return errors.New("mcp: the client did not declare a capability that the request needs")
	}
	return missingCapability(*missing)
}

// notDeclared returns what want has and have lacks; nil if that is nothing.
func notDeclared(want, have ClientCapabilities) *ClientCapabilities {
	var missing ClientCapabilities
	lacks := false
	if w, h := want.Roots, have.Roots; w != nil && h == nil {
		missing.Roots, lacks = w, true
	}
	if w, h := want.Sampling, have.Sampling; w != nil && (h == nil || w.Tools != nil && h.Tools == nil || w.Context != nil && h.Context == nil) {
		missing.Sampling, lacks = w, true
	}
	if w, h := want.Elicitation, have.Elicitation; w != nil && (h == nil || w.URL != nil && h.URL == nil || w.Form != nil && h.Form == nil && h.URL != nil) {
		missing.Elicitation, lacks = w, true
	}
	for _, name := range slices.Sorted(maps.Keys(want.Extensions)) {
		if _, ok := have.Extensions[name]; !ok {
			if missing.Extensions == nil {
				missing.Extensions = make(map[string]json.RawMessage)
			}
			missing.Extensions[name], lacks = want.Extensions[name], true
		}
	}
	if !lacks {
		return nil
	}
	return &missing
}

// Elicit asks the client's user for input. key names the question within the
// handler. See [Request.Ask] for what happens, and for what a handler must
// mind. Params that break a rule of the protocol, such as a form with anything
// but flat fields, are an error and not sent.
//
// The answer says whether the user accepted, declined or cancelled; only an
// accepted form has content, which fits the requested schema. That a url was
// accepted means that the user wants to go there, not that anything was done
// there: ask again, under another key, until your page says so. A client of
// 2025-11-25 can be told by [ServerSession.ElicitationComplete] if p has an
// ElicitationID of your own.
func (r *Request) Elicit(ctx context.Context, key string, p *ElicitParams) (*ElicitResult, error) {
	params, err := encodeAt(nil, p, rev20251125) // which has all that any has
	if err != nil {
		return nil, err
	}
	answers, err := r.Ask(ctx, InputRequests{key: {Method: methodElicit, Params: params}})
	if err != nil {
		return nil, err
	}
	result := new(ElicitResult)
	if err := r.decodeAnswer(key, answers[key], result); err != nil {
		return nil, err
	}
	if result.Action != "accept" || p.variant() == "url" {
		result.Content = nil // which nobody asked for
	}
	return result, nil
}

// Sample asks the client for a completion by its model; see [Request.Ask].
// Params that break a rule of the protocol are an error and not sent;
// IncludeContext is left out for a client that did not declare it.
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
func (r *Request) Sample(ctx context.Context, key string, p *CreateMessageParams) (*CreateMessageResult, error) {
	params, err := encodeAt(nil, p, rev20251125) // which has all that any has
	if err != nil {
		return nil, err
	}
	answers, err := r.Ask(ctx, InputRequests{key: {Method: methodCreateMessage, Params: params}})
	if err != nil {
		return nil, err
	}
	result := new(CreateMessageResult)
	return result, r.decodeAnswer(key, answers[key], result)
}

// checkToolResults refuses a conversation in which a tool's use is not
// followed by a message of results, all of them and nothing else
// (2025-11-25 client/sampling § Message Content Constraints).
func checkToolResults(messages []SamplingMessage) error {
	open := map[string]bool{} // tool uses of the message before
	for i, m := range messages {
		uses := map[string]bool{}
		results := 0
		for _, c := range m.Content {
			switch c.Type {
			case "tool_use":
				uses[c.ID] = true
			case "tool_result":
				results++
				if !open[c.ToolUseID] {
					return fmt.Errorf("message %d has a result of no tool use before it", i)
				}
				delete(open, c.ToolUseID)
			}
		}
		switch {
		case results > 0 && results < len(m.Content):
			return fmt.Errorf("message %d mixes tool results with other content", i)
		case len(open) > 0:
			return fmt.Errorf("message %d lacks the result of a tool use", i)
		}
		open = uses
	}
	if len(open) > 0 {
		return errors.New("the last message lacks the results of its tool uses")
	}
	return nil
}

// Roots asks the client for the folders that it lets the server work in; see
// [Request.Ask].
//
// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
// folders and files as arguments of tools, as URIs of resources, or from the
// server's configuration.
func (r *Request) Roots(ctx context.Context, key string) ([]Root, error) {
	// The params are optional, but there are clients that cannot do without.
	answers, err := r.Ask(ctx, InputRequests{key: {Method: methodRootsList, Params: json.RawMessage("{}")}})
	if err != nil {
		return nil, err
	}
	var result ListRootsResult
	err = r.decodeAnswer(key, answers[key], &result)
	return result.Roots, err
}

// decodeAnswer decodes what a client answered to a question.
func (r *Request) decodeAnswer(key string, answer json.RawMessage, v any) error {
	if err := decodeAt(answer, v, r.rev, false); err != nil {
		return r.badAnswer(key, err)
	}
	return nil
}

// badAnswer is the error for an answer that does not fit its question: in a
// retry it is the client's request that is wrong.
func (r *Request) badAnswer(key string, err error) error {
	if r.rev.modern {
		return Errorf(CodeInvalidParams, "params.inputResponses[%q]: %v", key, err)
	}
	return fmt.Errorf("mcp: the client's answer is not valid: %w", err)
}

// URLElicitationRequired returns the error by which a handler says that the
// user must first go to pages: at 2025-11-25 the client gets it as it is and
// tries again later. To a client of 2026-07-28 the pages go as questions of an
// [InputRequired]. One that declared no url elicitation is refused. Mode is url
// whatever an element says, and an empty ElicitationID becomes a new one.
func URLElicitationRequired(pages ...ElicitParams) *Error {
	pages = slices.Clone(pages)
	for i := range pages {
		pages[i].Mode = "url"
		if pages[i].ElicitationID == "" {
			pages[i].ElicitationID = randomText()
		}
	}
	e := Errorf(CodeURLElicitationRequired, "the user must open a page first")
	e.Data, _ = encodeAt(nil, &URLElicitationRequiredData{Elicitations: pages}, rev20251125)
	return e
}

// pagesRequired says in the words of the client's revision that the user must
// go to pages. err is what the handler returned; if it says something else, it
// is returned.
func (s *Server) pagesRequired(req *Request, err error) error {
	e := errorIn(err)
	if e == nil || e.Code != CodeURLElicitationRequired {
		return err
	}
	var data URLElicitationRequiredData
	if bad := decodeAt(e.Data, &data, rev20251125, false); bad != nil || len(data.Elicitations) == 0 {
		return fmt.Errorf("code %d needs the elicitations that are required: %w", e.Code, cmp.Or(bad, errors.New("there are none")))
	}
	questions := make(InputRequests)
	for i := range data.Elicitations {
		data.Elicitations[i].Mode = "url"
		params, bad := encodeAt(nil, &data.Elicitations[i], rev20251125)
		if bad != nil {
			return bad
		}
		questions["url-"+strconv.Itoa(i)] = InputRequest{methodElicit, params}
	}
	if req.rev.modern && req.asks {
		return req.pagesAgain(questions)
	}
	questions, bad := req.prepare(questions)
	if bad != nil {
		return Errorf(CodeInternalError, "the request needs a url elicitation: %v", bad)
	}
	if req.rev != rev20251125 {
		return fmt.Errorf("%s must not ask the client for input", req.Method)
	}
	for i := range data.Elicitations {
		decodeAt(questions["url-"+strconv.Itoa(i)].Params, &data.Elicitations[i], rev20251125, false)
	}
	e = Errorf(e.Code, "%s", e.Message)
	e.Data, bad = encodeAt(nil, &data, rev20251125)
	return cmp.Or[error](bad, e)
}

// pagesAgain asks a modern client to send the user to pages, each time until
// the handler is content, unless the user does not want to.
func (r *Request) pagesAgain(questions InputRequests) error {
	for key := range questions {
		answer := r.answerTo(key)
		if action, _ := stringValue(rawMember(answer, "action")); answer != nil && action != "accept" {
			return &refusedError{"the user did not open the page that the request needs"}
		}
		delete(r.known().answers, key)
	}
	return &InputRequired{Requests: questions}
}

// A refusedError is told to the client, and to its model where there is one.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// State returns what the handler kept with [Request.SetState], or in an
// [InputRequired], the last time that it ran for this request; nil the first
// time.
func (r *Request) State() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rounds == nil {
		return nil
	}
	return r.rounds.state
}

// SetState keeps a value, as JSON, for when the handler runs again with the
// answers to what it asked. A modern client carries it, sealed: it can
// neither read nor change it.
func (r *Request) SetState(v any) error {
	if !r.asks {
		return fmt.Errorf("mcp: %s has no rounds to keep state for", r.Method)
	}
	state, err := encodeJSON(nil, v)
	if err != nil {
		return err
	}
	known := r.known()
	r.mu.Lock()
	defer r.mu.Unlock()
	known.state = state
	return nil
}

// logHandler is the [slog.Handler] behind [Request.Log].
type logHandler struct {
	req  *Request
	mu   *sync.Mutex
	buf  *bytes.Buffer
	json slog.Handler // writes a record's data to buf
}

// Log returns a logger whose records go to the client, as notifications of
// this request, from the level on that the client asked for. A modern client
// that did not ask gets none; a legacy one gets info and above until it says
// otherwise. The data is an object: msg and the attributes.
//
// A session is sent no more than 1000 messages in a second; the logger of the
// server hears of those that are left out. What has no JSON form becomes a text
// that says so.
//
// Do not log secrets.
//
// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
// works. Write to stderr, or use OpenTelemetry.
func (r *Request) Log() *slog.Logger {
	buf := new(bytes.Buffer)
	opts := &slog.HandlerOptions{Level: slog.Level(-100), ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}
	return slog.New(&logHandler{r, new(sync.Mutex), buf, slog.NewJSONHandler(buf, opts)})
}

// threshold is the least level that the client wants; "" for none at all.
func (r *Request) threshold() LoggingLevel {
	if r.rev.modern {
		level, _ := stringValue(r.params.logLevel)
		return LoggingLevel(level)
	}
	ss := r.Session()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.level == "" {
		return "info"
	}
	return ss.level
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	least := h.req.threshold()
	return least != "" && loggingLevel(level).severity() >= least.severity()
}

func (h *logHandler) Handle(ctx context.Context, rec slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.req.Session().mayLog() {
		return nil
	}
	h.buf.Reset()
	if err := h.json.Handle(ctx, rec); err != nil {
		return err
	}
	p := &LogParams{Level: loggingLevel(rec.Level), Data: bytes.TrimSpace(bytes.Clone(h.buf.Bytes()))}
	if repeatedMember(p.Data) != nil { // an attribute given again
		p.Data = canonical(p.Data) // has the last one only
	}
	return h.req.notify(ctx, notifyMessage, p)
}

// maxLogRate is how many log messages a session is sent in a second.
const maxLogRate = 1000

// mayLog counts a log message and reports whether it may be sent; what may not
// is counted, too, and told the server's own logger
// (2026-07-28 server/utilities/logging § Security).
func (ss *ServerSession) mayLog() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if now := time.Now(); now.Sub(ss.logSecond) >= time.Second {
		if ss.logDropped > 0 {
			ss.server.log.Warn("mcp: log messages to a client were left out", "count", ss.logDropped)
		}
		ss.logSecond, ss.logged, ss.logDropped = now, 0, 0
	}
	if ss.logged >= maxLogRate {
		if ss.logDropped++; ss.logDropped == 1 {
			ss.server.log.Warn("mcp: log messages to a client are left out", "limit", maxLogRate)
		}
		return false
	}
	ss.logged++
	return true
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.req, h.mu, h.buf, h.json.WithAttrs(attrs)}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.req, h.mu, h.buf, h.json.WithGroup(name)}
}

// loggingLevel is the protocol's name for a level of log/slog: what lies
// between slog's own levels is notice, and what lies above critical, alert
// and emergency.
func loggingLevel(level slog.Level) LoggingLevel {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelInfo+2:
		return "info"
	case level < slog.LevelWarn:
		return "notice"
	case level < slog.LevelError:
		return "warning"
	case level < slog.LevelError+4:
		return "error"
	case level < slog.LevelError+8:
		return "critical"
	case level < slog.LevelError+12:
		return "alert"
	}
	return "emergency"
}

// Ceilings of subscriptions.
const (
	coalesce    = 10 * time.Millisecond // how long changes gather before they are told
	maxWatched  = 10000                 // resources that one session or subscription watches
	maxWatchers = 10000                 // subscriptions of a server
)

// A watcher is told of changes: a legacy session, or one subscriptions/listen
// request. Of the same change it is told once, however often it happens in a
// short while.
type watcher struct {
	wants func(method, uri string) bool
	tell  func(method, uri string)

	mu      sync.Mutex
	ready   bool
	pending []change
}

type change struct{ method, uri string }

// ResourceUpdated tells the clients that watch a resource that it has
// changed.
func (s *Server) ResourceUpdated(uri string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.changed(notifyResourceUpdated, uri)
}

// changed notes a change for all who want to know. Under s.mu.
func (s *Server) changed(method, uri string) {
	for w := range s.watchers {
		if w.wants(method, uri) {
			w.add(change{method, uri})
		}
	}
}

func (w *watcher) add(c change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.pending, c) {
		return
	}
	w.pending = append(w.pending, c)
	if w.ready && len(w.pending) == 1 {
		time.AfterFunc(coalesce, w.flush)
	}
}

// start lets a watcher tell what it gathered, and what will come.
func (w *watcher) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = true
	if len(w.pending) > 0 {
		time.AfterFunc(coalesce, w.flush)
	}
}

func (w *watcher) flush() {
	w.mu.Lock()
	pending := w.pending
	w.pending = nil
	w.mu.Unlock()
	for _, c := range pending {
		w.tell(c.method, c.uri)
	}
}

func (s *Server) watch(w *watcher) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) >= maxWatchers {
		return Errorf(CodeInternalError, "the server has too many subscriptions")
	}
	s.watchers[w] = true
	return nil
}

func (s *Server) unwatch(w *watcher) {
	if w == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// watchSession makes a legacy session one that is told of changes, once the
// client says that it is initialized. Under ss.mu.
func (s *Server) watchSession(ss *ServerSession) {
	caps := &ss.declared // constant from now on
	w := &watcher{ready: true, wants: func(method, uri string) bool {
		if !ss.ready.Load() {
			return false
		}
		switch method {
		case notifyToolsChanged:
			return caps.Tools != nil && caps.Tools.ListChanged
		case notifyPromptsChanged:
			return caps.Prompts != nil && caps.Prompts.ListChanged
		case notifyResourcesChanged:
			return caps.Resources != nil && caps.Resources.ListChanged
		}
		ss.watchMu.Lock()
		defer ss.watchMu.Unlock()
		return ss.watched[uri]
	}}
	rev := ss.rev
	w.tell = func(method, uri string) {
		var p any
		if method == notifyResourceUpdated {
			p = &ResourceUpdatedParams{URI: uri}
		}
		if ss.core.out != nil {
			ss.core.notify(ss.core.ctx, ss.core.out, method, p, rev)
		}
	}
	if ss.core.ctx.Err() == nil && s.watch(w) == nil { // else nobody would end it
		ss.watcher = w
	}
}

// subscribe and unsubscribe change which resources a legacy session watches
// (2025-11-25 server/resources § Subscriptions).
func (s *Server) subscribe(ctx context.Context, req *Request) (any, error) {
	uri, err := subscribedURI(req)
	if err != nil {
		return nil, err
	}
	if !s.canWatch(ctx, req, uri) {
		return nil, ResourceNotFound(uri)
	}
	ss := req.Session()
	ss.watchMu.Lock()
	defer ss.watchMu.Unlock()
	if len(ss.watched) >= maxWatched && !ss.watched[uri] {
		return nil, Errorf(CodeInternalError, "the session watches too many resources")
	}
	if ss.watched == nil {
		ss.watched = make(map[string]bool)
	}
	ss.watched[uri] = true
	return nil, nil
}

func (s *Server) unsubscribe(ctx context.Context, req *Request) (any, error) {
	uri, err := subscribedURI(req)
	if err != nil {
		return nil, err
	}
	ss := req.Session()
	ss.watchMu.Lock()
	watched := ss.watched[uri] // though it may be gone now
	delete(ss.watched, uri)
	ss.watchMu.Unlock()
	if !watched && !s.canWatch(ctx, req, uri) {
		return nil, ResourceNotFound(uri)
	}
	return nil, nil
}

func subscribedURI(req *Request) (string, error) {
	var p SubscribeParams
	if err := decodeAt(req.Params, &p, req.rev, true); err != nil {
		return "", Errorf(CodeInvalidParams, "%v", err)
	}
	return p.URI, nil
}

// canWatch reports whether who sent req may be told of changes to a URI: there
// is a resource of that URI, or a template that it matches. Where a handler
// of the server's user reads resources, only it knows which there are.
func (s *Server) canWatch(ctx context.Context, req *Request, uri string) bool {
	s.mu.RLock()
	custom := s.custom[methodResourcesRead] != nil
	s.mu.RUnlock()
	if custom {
		return absoluteURI(uri)
	}
	h, _ := s.resource(ctx, req, uri)
	return h != nil
}

// listen serves subscriptions/listen: first what of it will be done, then the
// changes, until the client cancels it or the session ends
// (2026-07-28 basic/patterns/subscriptions).
func (s *Server) listen(ctx context.Context, req *Request) (any, error) {
	var p ListenParams
	if err := decodeAt(req.Params, &p, req.rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	if len(p.Notifications.ResourceSubscriptions) > maxWatched {
		return nil, Errorf(CodeInvalidParams, "params.notifications.resourceSubscriptions: at most %d", maxWatched)
	}
	s.mu.RLock()
	honoured := s.capabilities().honours(p.Notifications)
	s.mu.RUnlock()
	meta := Meta{metaSubscriptionID: json.RawMessage(req.ID.raw)}
	uris := make(map[string]bool)
	if wanted := honoured.ResourceSubscriptions; wanted != nil {
		honoured.ResourceSubscriptions = []string{} // honoured in part: what nobody can read never changes
		for _, uri := range wanted {
			if !uris[uri] && s.canWatch(ctx, req, uri) {
				uris[uri] = true
				honoured.ResourceSubscriptions = append(honoured.ResourceSubscriptions, uri)
			}
		}
	}
	w := &watcher{wants: func(method, uri string) bool {
		switch method {
		case notifyToolsChanged:
			return honoured.ToolsListChanged
		case notifyPromptsChanged:
			return honoured.PromptsListChanged
		case notifyResourcesChanged:
			return honoured.ResourcesListChanged
		}
		return uris[uri]
	}, tell: func(method, uri string) {
		var n any = &EmptyParams{Meta: meta}
		if method == notifyResourceUpdated {
			n = &ResourceUpdatedParams{URI: uri, Meta: meta}
		}
		req.notify(ctx, method, n)
	}}
	ss := req.Session()
	ss.mu.Lock()
	ss.listens++
	ss.mu.Unlock()
	req.answered = func(bool) { ss.listenEnded() }
	if err := s.watch(w); err != nil {
		return nil, err
	}
	defer s.unwatch(w)
	if err := req.notify(ctx, notifyAcknowledged, &ListenParams{Notifications: honoured, Meta: meta}); err != nil {
		return nil, err
	}
	w.start()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ss.draining.wait():
	}
	w.flush()
	if ss.core.conn != nil { // on a stream the client is told so, too: after the result, which a client would drop after this
		req.answered = func(cancelled bool) {
			defer ss.listenEnded()
			if !cancelled {
				p := &CancelledParams{RequestID: req.ID, Reason: "the server ends the subscription"}
				ss.core.notify(context.WithoutCancel(ctx), req.out, notifyCancelled, p, req.rev)
			}
		}
	}
	return &EmptyResult{Meta: meta}, nil
}

// honours returns the part of a filter that a server with these capabilities
// tells of.
func (caps ServerCapabilities) honours(f SubscriptionFilter) (h SubscriptionFilter) {
	h.ToolsListChanged = f.ToolsListChanged && caps.Tools != nil && caps.Tools.ListChanged
	h.PromptsListChanged = f.PromptsListChanged && caps.Prompts != nil && caps.Prompts.ListChanged
	h.ResourcesListChanged = f.ResourcesListChanged && caps.Resources != nil && caps.Resources.ListChanged
	if caps.Resources != nil && caps.Resources.Subscribe {
		h.ResourceSubscriptions = f.ResourceSubscriptions
	}
	return h
}

// sealedState is what crosses the client between rounds.
type sealedState struct {
	Answers InputResponses  `json:"a"`
	State   json.RawMessage `json:"s,omitempty"`
	Count   int             `json:"n"`
	Expires int64           `json:"e"` // Unix seconds
}

// inputRequired is the result that asks a modern client for input.
func (s *Server) inputRequired(req *Request, need *InputRequired) (any, error) {
	questions, err := req.prepare(need.Requests)
	if err != nil {
		return nil, err
	}
	known := req.known()
	plain, err := encodeJSON(nil, &sealedState{
		Answers: known.answers, State: known.state, Count: known.count,
		Expires: time.Now().Add(s.opts.StateTTL).Unix(),
	})
	if err != nil {
		return nil, err
	}
	sealed := s.seal.seal(plain, binding(req))
	result := &InputRequiredResult{ResultType: "input_required", RequestState: &sealed}
	if len(questions) > 0 {
		result.InputRequests = questions
	}
	return result, nil
}

// resume reads what a retry brings: the sealed state of the round before, and
// the answers to what was asked then.
func (s *Server) resume(req *Request) *Error {
	if raw := req.params.requestState; raw != nil {
		text, ok := stringValue(raw)
		if !ok {
			return Errorf(CodeInvalidParams, "params.requestState must be a string")
		}
		var state sealedState
		plain, ok := s.seal.open(text, binding(req))
		if !ok || json.Unmarshal(plain, &state) != nil {
			return Errorf(CodeInvalidParams, "params.requestState is not valid for this request")
		}
		if time.Now().Unix() > state.Expires {
			return Errorf(CodeInvalidParams, "params.requestState has expired")
		}
		if s.opts.StateOnce && !s.spend(text) {
			return Errorf(CodeInvalidParams, "params.requestState was used already")
		}
		known := req.known()
		known.state, known.count = state.State, state.Count
		maps.Copy(known.answers, state.Answers)
	}
	if raw := req.params.inputResponses; raw != nil {
		var answers InputResponses
		if err := decodeAt(raw, &answers, req.rev, true); err != nil {
			return Errorf(CodeInvalidParams, "params.inputResponses must be an object with one member a question")
		}
		maps.Copy(req.known().answers, answers)
	}
	return nil
}

// maxSpent bounds how many used states are kept in mind. Beyond it none is
// taken until some have expired.
const maxSpent = 200000

// spend notes that a state is used and reports whether it was not before. A
// note lives until the state has expired: for one to two times StateTTL
// (2026-07-28 basic/patterns/mrtr § Security).
func (s *Server) spend(state string) bool {
	id := sha256.Sum256([]byte(state))
	s.spentMu.Lock()
	defer s.spentMu.Unlock()
	if now := time.Now(); now.Sub(s.spentSince) > s.opts.StateTTL+time.Second { // states expire by whole seconds
		s.spent[1], s.spent[0], s.spentSince = s.spent[0], make(map[[32]byte]bool), now
	}
	if s.spent[0][id] || s.spent[1][id] || len(s.spent[0])+len(s.spent[1]) >= maxSpent {
		return false
	}
	s.spent[0][id] = true
	return true
}

// binding is what sealed state is good for: this method, this name, these
// arguments, this principal (2026-07-28 basic/patterns/mrtr § Security).
func binding(req *Request) []byte {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(req.Method), canonical(req.params.name), canonical(req.params.uri), canonical(req.params.arguments), []byte(req.Principal),
	} {
		binary.Write(h, binary.BigEndian, uint64(len(part)))
		h.Write(part)
	}
	return h.Sum(nil)
}

// canonical returns a JSON value with sorted members, no white space and one
// way of escaping, so that a client may write its params anew for a retry.
func canonical(raw []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}

// A sealer encrypts and authenticates, with AES-GCM.
type sealer struct {
	keys    []cipher.AEAD
	cursors []byte // the key of cursors
}

func newSealer(secrets [][]byte) *sealer {
	if len(secrets) == 0 {
		random := make([]byte, 32)
		rand.Read(random)
		secrets = [][]byte{random}
	}
	cursors := sha256.Sum256(append([]byte("mcp cursor\x00"), secrets[0]...))
	s := &sealer{cursors: cursors[:]}
	for _, secret := range secrets {
		if len(secret) < 16 {
			panic("mcp: a state key must have at least 16 bytes")
		}
		key := sha256.Sum256(append([]byte("mcp requestState\x00"), secret...))
		block, err := aes.NewCipher(key[:])
		if err != nil {
			panic(err) // a 32-byte key is always good
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			panic(err) // AES is a 128-bit block cipher
		}
		s.keys = append(s.keys, aead)
	}
	return s
}

func (s *sealer) seal(plain, bound []byte) string {
	nonce := make([]byte, s.keys[0].NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(s.keys[0].Seal(nonce, nonce, plain, bound))
}

func (s *sealer) open(text string, bound []byte) (plain []byte, ok bool) {
	sealed, ok := decodeText(text)
	if !ok {
		return nil, false
	}
	for _, key := range s.keys {
		if n := key.NonceSize(); len(sealed) >= n {
			if plain, err := key.Open(nil, sealed[:n], sealed[n:], bound); err == nil {
				return plain, true
			}
		}
	}
	return nil, false
}

// decodeText decodes base64 that we wrote. The same bytes can be written in
// other ways, with line breaks or other bits at the end: those are not ours.
func decodeText(text string) (data []byte, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	return data, err == nil && base64.RawURLEncoding.EncodeToString(data) == text
}

// randomText returns 128 random bits as text.
func randomText() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// URI templates (RFC 6570, all four levels), both ways: expand writes the URI
// of some variables, match finds the variables of a URI. Matching is compiled
// at registration to one regular expression, which Go runs in time linear in
// the URI, whatever the URI is.

// A uriTemplate is a parsed template. It is immutable.
type uriTemplate struct {
	parts  []uriPart
	re     *regexp.Regexp
	groups []uriGroup // what the groups of re hold
}

// A uriPart is literal text (op is nil) or an expression in braces.
type uriPart struct {
	literal string // as the author wrote it
	op      *uriOperator
	vars    []uriVar
}

// A uriVar is one variable of an expression.
type uriVar struct {
	name    string
	max     int // {name:max}, in characters; 0 when absent
	explode bool
}

// A uriGroup is a capturing group of the regular expression: the value of one
// variable, or name=value pairs.
type uriGroup struct {
	index int
	pairs string // what separates the pairs; "" for a value
	vars  []uriVar
}

// A uriOperator is a row of the table in RFC 6570 appendix A.
type uriOperator struct {
	first, sep string
	named      bool   // name=value rather than value
	ifEmpty    string // what follows the name when the value is empty
	reserved   bool   // reserved characters and escapes stay as they are
}

var uriSimple = &uriOperator{sep: ","} // {var}

var uriOperators = map[byte]*uriOperator{
	'+': {sep: ",", reserved: true},
	'#': {first: "#", sep: ",", reserved: true},
	'.': {first: ".", sep: "."},
	'/': {first: "/", sep: "/"},
	';': {first: ";", sep: ";", named: true},
	'?': {first: "?", sep: "&", named: true, ifEmpty: "="},
	'&': {first: "&", sep: "&", named: true, ifEmpty: "="},
}

func uriReserved(c byte) bool { return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 }

func uriUnreserved(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-._~", c) >= 0
}

// uriMaxVars bounds what a match costs for each byte of the URI.
const uriMaxVars = 64

// parseTemplate parses s. It refuses what RFC 6570 does not allow, and says at
// which byte that is.
func parseTemplate(s string) (*uriTemplate, error) {
	if i := strings.IndexRune(s, utf8.RuneError); i >= 0 && !utf8.ValidString(s) {
		return nil, uriError(s, i, "this is not UTF-8")
	}
	t, vars := new(uriTemplate), 0
	for pos := 0; pos < len(s); {
		if s[pos] != '{' {
			end := pos
			for end < len(s) && s[end] != '{' {
				c, n := uriOctet(s, end)
				if n == 1 && !uriUnreserved(c) && !uriReserved(c) && c < utf8.RuneSelf {
					return nil, uriError(s, end, "this character must be percent-encoded")
				}
				end += n
			}
			t.parts = append(t.parts, uriPart{literal: s[pos:end]})
			pos = end
			continue
		}
		n := strings.IndexByte(s[pos:], '}')
		if n < 0 {
			return nil, uriError(s, pos, "the brace is not closed")
		}
		part, err := parseExpression(s, pos+1, pos+n)
		if err != nil {
			return nil, err
		}
		if vars += len(part.vars); vars > uriMaxVars {
			return nil, uriError(s, pos, "these are too many variables")
		}
		t.parts = append(t.parts, part)
		pos += n + 1
	}
	return t, t.compile()
}

func uriError(s string, pos int, rule string) error {
	return fmt.Errorf("URI template %q, byte %d: %s", s, pos, rule)
}

// parseExpression parses s[pos:end], which is between two braces.
func parseExpression(s string, pos, end int) (part uriPart, err error) {
	if pos == end {
		return part, uriError(s, pos, "the expression is empty")
	}
	part.op = uriSimple
	if op := uriOperators[s[pos]]; op != nil {
		part.op = op
		pos++
	} else if strings.IndexByte("=,!@|", s[pos]) >= 0 {
		return part, uriError(s, pos, "this operator is reserved and has no meaning")
	}
	for spec := range strings.SplitSeq(s[pos:end], ",") {
		v, bad, rule := parseVariable(spec)
		if rule != "" {
			return part, uriError(s, pos+bad, rule)
		}
		part.vars = append(part.vars, v)
		pos += len(spec) + 1
	}
	return part, nil
}

// parseVariable parses one variable and its modifier. When it cannot, it says
// which rule is broken, at byte bad.
func parseVariable(spec string) (v uriVar, bad int, rule string) {
	end := 0
	for end < len(spec) {
		c, n := uriOctet(spec, end)
		if n == 1 && (!uriUnreserved(c) || c == '-' || c == '~') {
			break
		}
		end += n
	}
	v.name = spec[:end]
	if i := strings.Index("."+v.name+".", ".."); i >= 0 {
		return v, min(i, max(end-1, 0)), "a variable name is letters, digits, _ and escapes, with single dots between them"
	}
	switch mod := spec[end:]; {
	case mod == "":
	case mod == "*":
		v.explode = true
	case mod[0] == ':':
		n, err := strconv.ParseUint(mod[1:], 10, 16)
		if err != nil || n > 9999 || mod[1] == '0' {
			return v, end + 1, "a prefix length is a number from 1 to 9999"
		}
		v.max = int(n)
	default:
		return v, end, "neither part of a variable name nor a modifier"
	}
	return v, 0, ""
}

// expand returns the URI for vars. A variable that is not in vars is
// undefined: it is left out together with its separator.
func (t *uriTemplate) expand(vars map[string]string) string {
	uri, _ := t.expandWith(func(name string) any { // a string always expands
		if v, ok := vars[name]; ok {
			return v
		}
		return nil
	})
	return uri
}

// expandWith is expand for values that are a string, a []string, or a
// map[string]string (its keys go in order); nil and empty ones are undefined.
func (t *uriTemplate) expandWith(get func(name string) any) (uri string, err error) {
	var b []byte
	for _, p := range t.parts {
		if p.op == nil {
			b = appendEscaped(b, p.literal, true)
			continue
		}
		sep := p.op.first
		for _, v := range p.vars {
			items, width, err := v.items(get(v.name), p.op.reserved)
			if err != nil {
				return "", err
			}
			if len(items) > 0 {
				b = v.append(b, items, width, sep, p.op)
				sep = p.op.sep
			}
		}
	}
	return string(b), nil
}

// items flattens a value. The width is 2 when keys and values alternate.
func (v uriVar) items(value any, reserved bool) (items []string, width int, err error) {
	width = 1
	switch value := value.(type) {
	case nil:
	case string:
		if v.max > 0 {
			value = uriPrefix(value, v.max, reserved)
		}
		return []string{value}, 1, nil
	case []string:
		items = value
	case map[string]string:
		for _, k := range slices.Sorted(maps.Keys(value)) {
			items = append(items, k, value[k])
		}
		width = 2
	default:
		return nil, 0, fmt.Errorf("URI template variable %s: a %T cannot be expanded", v.name, value)
	}
	if v.max > 0 && items != nil {
		return nil, 0, fmt.Errorf("URI template variable %s: only a string has a prefix", v.name)
	}
	return items, width, nil
}

// append writes the items of one variable, with what goes before them.
func (v uriVar) append(b []byte, items []string, width int, sep string, op *uriOperator) []byte {
	group := len(items) // how many follow one separator
	if v.explode {
		group = width
	}
	for ; len(items) > 0; items = items[group:] {
		b = append(b, sep...)
		sep = op.sep
		part, key := items[:group], v.explode && width == 2
		if key {
			b = appendEscaped(b, part[0], op.reserved)
			part = part[1:]
		} else if op.named {
			b = append(b, v.name...)
		}
		if op.named && len(part) == 1 && part[0] == "" {
			b = append(b, op.ifEmpty...)
		} else if op.named || key {
			b = append(b, '=')
		}
		for i, item := range part {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendEscaped(b, item, op.reserved)
		}
	}
	return b
}

func appendEscaped(b []byte, s string, reserved bool) []byte {
	for i := range len(s) {
		c := s[i]
		keep := uriUnreserved(c)
		if reserved && !keep {
			_, n := uriOctet(s, i)
			keep = n == 3 || uriReserved(c)
		}
		if keep {
			b = append(b, c)
		} else {
			b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return b
}

// uriPrefix returns the first max characters of s, which may be written as
// escapes.
func uriPrefix(s string, max int, escapes bool) string {
	for i := 0; i < len(s); {
		c, n := s[i], 1
		if escapes {
			c, n = uriOctet(s, i)
		}
		if utf8.RuneStart(c) {
			if max == 0 {
				return s[:i]
			}
			max--
		}
		i += n
	}
	return s
}

// uriOctet returns the byte that s has at i, and how long it is there: 3 for
// an escape, else 1.
func uriOctet(s string, i int) (c byte, n int) {
	if s[i] == '%' && i+2 < len(s) {
		if hex, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
			return byte(hex), 3
		}
	}
	return s[i], 1
}

// uriDecode decodes the escapes of s, once. It refuses a % that starts none,
// and what is then not UTF-8 (so no overlong dot or slash either).
func uriDecode(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, utf8.ValidString(s)
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c, n := uriOctet(s, i)
		if n == 1 && c == '%' {
			return "", false
		}
		b = append(b, c)
		i += n
	}
	return string(b), utf8.Valid(b)
}

// compile writes the regular expression that the URIs of t match.
func (t *uriTemplate) compile() (err error) {
	b := []byte(`\A`)
	for rest := t.parts; len(rest) > 0; {
		p := rest[0]
		rest = rest[1:]
		switch {
		case p.op == nil:
			b = p.appendLiteral(b)
		case p.op.named:
			if p.op.sep == "&" { // {?a}{&b} is one query, in any order
				for len(rest) > 0 && rest[0].op == uriOperators['&'] {
					p.vars = append(slices.Clip(p.vars), rest[0].vars...)
					rest = rest[1:]
				}
			}
			b = t.appendPairs(b, p)
		default:
			b = t.appendValues(b, p, rest)
		}
	}
	slices.SortStableFunc(t.groups, func(a, b uriGroup) int { // prefixes last, the longest first
		return cmp.Compare(uint(b.vars[0].max-1), uint(a.vars[0].max-1))
	})
	t.re, err = regexp.Compile(string(append(b, `\z`...)))
	return err
}

// appendLiteral takes text beyond ASCII as it is, too, for peers that fill a
// template in without encoding.
func (p uriPart) appendLiteral(b []byte) []byte {
	given, encoded := p.literal, string(appendEscaped(nil, p.literal, true))
	if given == encoded {
		return append(b, regexp.QuoteMeta(given)...)
	}
	return fmt.Appendf(b, "(?:%s|%s)", regexp.QuoteMeta(encoded), regexp.QuoteMeta(given))
}

// uriPlain is what a value may always have, as the inside of a character
// class: unreserved characters but the dot; those beyond ASCII, for peers that
// do not encode them; and the reserved ones that encodeURIComponent of
// JavaScript leaves alone, to which no operator gives a meaning.
const uriPlain = `\w\-~!*'()\x{80}-\x{10FFFF}`

func uriClass(class string) string { return "(?:[" + class + "]|%[[:xdigit:]]{2})" }

func (t *uriTemplate) addGroup(pairs string, vars ...uriVar) {
	t.groups = append(t.groups, uriGroup{len(t.groups) + 1, pairs, vars})
}

// appendValues is for the expressions that have values without names; rest is
// what follows in the template. All but the first value, and that one too
// when the operator is written before it, may be absent.
func (t *uriTemplate) appendValues(b []byte, p uriPart, rest []uriPart) []byte {
	sep, open := p.op.first, 0
	for i, v := range p.vars {
		if sep != "" {
			b = append(b, "(?:"+regexp.QuoteMeta(sep)...)
			open++
		}
		sep = p.op.sep
		last := i == len(p.vars)-1
		t.addGroup("", v)
		b = append(b, "("+uriClass(p.valueClass(v, last, rest))+"*"...)
		if !last || len(rest) > 0 && rest[0].op != nil && rest[0].op.first != "" {
			b = append(b, '?') // the shorter value: what is optional after it is there if it can be
		}
		b = append(b, ')')
	}
	return append(b, strings.Repeat(")?", open)...)
}

// valueClass is what a value may have. A list keeps its commas; the last
// variable of an expression takes the rest of the list.
func (p uriPart) valueClass(v uriVar, last bool, rest []uriPart) string {
	class := uriPlain
	add := func(chars string, in bool) {
		if in {
			class += chars
		}
	}
	follows := func(op byte) bool {
		return slices.ContainsFunc(rest, func(p uriPart) bool { return p.op == uriOperators[op] })
	}
	add(".", p.op.sep != "." || last || v.explode)
	add(",", p.op.sep != "," || last || v.explode)
	add("/", p.op.sep == "/" && v.explode)
	add("=", v.explode)
	add(`:/\[\]@$&+;=`, p.op.reserved)
	add("?", p.op.reserved && !follows('?')) // a query or fragment to come is
	add("#", p.op.reserved && !follows('#')) // not part of the value
	return class
}

// appendPairs is for the expressions of name=value pairs, of which any may be
// absent. The names of an exploded variable are not known: it may be a map.
func (t *uriTemplate) appendPairs(b []byte, p uriPart) []byte {
	names := make([]string, len(p.vars))
	for i, v := range p.vars {
		names[i] = regexp.QuoteMeta(v.name)
		if v.explode {
			names[i] = uriClass(uriPlain+".") + "+"
		}
	}
	pair := "(?:" + strings.Join(names, "|") + ")(?:=" + uriClass(uriPlain+".,") + "*)?"
	t.addGroup(p.op.sep, p.vars...)
	return fmt.Appendf(b, `(\%s%s(?:%s%s)*)?`, p.op.first, pair, p.op.sep, pair)
}

// match returns the variables of uri, decoded once; an absent variable is not
// in the map. It compares the URI as it is, never normalised, and does not
// match when no expansion of the template looks like it, nor when an escape
// is broken or gives no UTF-8, nor when it is a file: URI with an unsafePath
// (2026-07-28 server/resources, Security Considerations). A value may have any
// character that an escape can make, slashes and dots too: for other schemes,
// ask unsafePath before using one as a path.
//
// A variable takes as much as it can, but leaves optional expressions after it
// their part. {var} has no reserved character except !*'() and the commas of
// a list; {+var} and {#var} may have all. Query variables come in any order.
// The value of an exploded variable is its list as written; in a query, its
// values joined with commas, as key=value when the key is not the variable's
// name.
func (t *uriTemplate) match(uri string) (vars map[string]string, ok bool) {
	loc := t.re.FindStringSubmatchIndex(uri)
	if loc == nil {
		return nil, false
	}
	if len(uri) >= 5 && strings.EqualFold(uri[:5], "file:") {
		if path, ok := uriDecode(uri[5:]); !ok || unsafePath(path) {
			return nil, false
		}
	}
	vars = make(map[string]string, len(t.groups))
	for _, g := range t.groups {
		from, to := loc[2*g.index], loc[2*g.index+1]
		if from >= 0 && !g.bind(vars, uri[from:to]) {
			return nil, false
		}
	}
	return vars, true
}

// bind decodes the text of a group into vars.
func (g *uriGroup) bind(vars map[string]string, text string) bool {
	if g.pairs == "" {
		return g.vars[0].bind(vars, text)
	}
	lists := make([][]string, len(g.vars)) // of the exploded ones
	for pair := range strings.SplitSeq(text[1:], g.pairs) {
		name, value, _ := strings.Cut(pair, "=")
		i := slices.IndexFunc(g.vars, func(v uriVar) bool { return v.name == name })
		if i < 0 {
			i = slices.IndexFunc(g.vars, func(v uriVar) bool { return v.explode })
			value = pair
		}
		if g.vars[i].explode {
			lists[i] = append(lists[i], value)
		} else if !g.vars[i].bind(vars, value) {
			return false
		}
	}
	for i, list := range lists {
		if list != nil && !g.vars[i].bind(vars, strings.Join(list, ",")) {
			return false
		}
	}
	return true
}

// bind decodes one value. A variable that is there twice must be the same
// twice, or a prefix of it where only a prefix is asked for.
func (v *uriVar) bind(vars map[string]string, text string) bool {
	value, ok := uriDecode(text)
	if !ok || v.max > 0 && uriPrefix(value, v.max, false) != value {
		return false
	}
	if was, twice := vars[v.name]; twice {
		return was == value || v.max > 0 && uriPrefix(was, v.max, false) == value
	}
	vars[v.name] = value
	return true
}

// unsafePath reports whether a decoded value, used as a file path, may leave
// the folder it is meant for: it has a NUL or, between slashes or backslashes,
// a "." or ".." (also one with the dots and spaces after it that Windows
// ignores).
func unsafePath(v string) bool {
	if strings.IndexByte(v, 0) >= 0 {
		return true
	}
	for seg := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '/' || r == '\\' }) {
		if seg[0] == '.' && strings.Trim(seg, ". ") == "" {
			return true
		}
	}
	return false
}
