package mcp

import (
	"bytes"
	lru "container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Client connects to servers: of every revision, any number at a time. Make
// one with [NewClient].
type Client struct {
	info Implementation
	opts ClientOptions
	caps ClientCapabilities
	revs []*revision // offered, oldest first

	mu      sync.Mutex
	handler Handler // all middleware around the request's own next
}

// ClientOptions say what a client can do and how it works. The zero value
// connects to any server and answers none of its questions. Elicit, Sample and
// Roots may be called several times at once.
type ClientOptions struct {
	// Logger gets what the client notices about itself and its servers. nil
	// logs nothing.
	Logger *slog.Logger
	// Versions are the protocol revisions to speak; nil means all. Without
	// 2026-07-28 a server is not asked for it first, with nothing else no
	// older server is accepted.
	Versions []string
	// ProbeTimeout is how long a server on a stream may take to answer
	// whether it speaks 2026-07-28, before it is taken for an older one;
	// 0 means 5 seconds.
	ProbeTimeout time.Duration
	// Timeout is how long a call waits for its answer, or for the next sign
	// of progress; 0 means 60 seconds, negative means for ever. The time in
	// which the client itself answers the server does not count.
	Timeout time.Duration
	// MaxTimeout is how long a call waits in all, whatever progress there
	// is; 0 means ten times Timeout, negative means for ever. It is a ceiling:
	// an older server's question does not stop it, so it must leave time for
	// the user. At 2026-07-28 each round of questions and answers counts for
	// itself, and the user's time between them does not.
	MaxTimeout time.Duration
	// KeepAlive is how often a quiet server is pinged, before 2026-07-28, which has
	// no ping; 0 means never. One that gives no sign of life for three times
	// that, while neither side works for the other, is lost: the session ends
	// with an error. Any message is a sign of life.
	KeepAlive time.Duration
	// Stray hears of messages that nobody waits for or that cannot be read:
	// responses with an id that is unknown, null, or of a call that was given
	// up, malformed messages, refused notifications. m is what could be read
	// of it, nil if that is nothing, and err says what is wrong with it. Calls
	// come one after the other, in order with other notifications.
	Stray func(m *Message, err error)
	// MaxRounds is how often the server may ask for input before it answers
	// one call; 0 means 10.
	MaxRounds int
	// CacheSize is how many bytes of results a session keeps while they are
	// fresh: those of lists, resources/read and server/discover, as far as a
	// server of 2026-07-28 allows. 0 means 16 MiB, negative keeps none.
	CacheSize int64
	// Restart opens a connection again that was lost without Close, such as a
	// server process that died: the next call does it, or the loop over the
	// Events of a subscription. What was negotiated is negotiated again, and
	// subscriptions are taken out anew; see [Subscription.Events]. Calls that
	// were running fail, since nobody knows what became of them. A server that
	// does not come up is tried 5 times, and one that dies often is given ever
	// more time, up to 10 seconds.
	Restart bool

	// Elicit answers questions to the user. What accepted content lacks is
	// filled in from the defaults of the requested schema, and then it must fit.
	//
	// When p.Mode is "url", which the client must declare by Capabilities, the
	// user is asked to open the page p.URL: to accept means to agree, nothing
	// is opened or fetched here. A server of 2025-11-25 may refuse a call until
	// the user has visited pages: if all of them are accepted, the call waits
	// until the server is done with each, and is sent again.
	Elicit func(ctx context.Context, p *ElicitParams) (*ElicitResult, error)
	// Sample runs the model for the server.
	//
	// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
	// a model provider's API from the server.
	Sample func(ctx context.Context, p *CreateMessageParams) (*CreateMessageResult, error)
	// Roots returns the folders that the server may work in.
	//
	// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
	// folders and files as arguments of tools, as URIs of resources, or from the
	// server's configuration.
	Roots func(ctx context.Context) ([]Root, error)
	// Capabilities replaces what the client would declare by the functions
	// above: elicitation of forms, sampling without tools, roots. nil means
	// that it is derived.
	Capabilities *ClientCapabilities

	// Log gets the server's log messages, one after the other.
	//
	// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
	// works. Write to stderr, or use OpenTelemetry.
	Log func(ctx context.Context, p *LogParams)
	// Notify gets every notification of the server, one after the other.
	Notify func(ctx context.Context, method string, params json.RawMessage)
}

// NewClient returns a client that tells servers it is info. opts may be nil.
// It panics if opts name an unknown version, and if info or capabilities hold
// what is not JSON.
func NewClient(info Implementation, opts *ClientOptions) *Client {
	c := &Client{info: info, handler: func(ctx context.Context, req *Request) (any, error) { return req.next(ctx, req) }}
	if opts != nil {
		c.opts = *opts
	}
	o := &c.opts
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = 5 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.MaxTimeout == 0 {
		o.MaxTimeout = 10 * o.Timeout
	}
	if o.MaxRounds <= 0 {
		o.MaxRounds = 10
	}
	if o.CacheSize == 0 {
		o.CacheSize = 16 << 20
	}
	c.revs = mustRevisions(o.Versions)
	mustEncode(&c.info, revLatest)
	if o.Capabilities != nil {
		c.caps = *o.Capabilities
		mustEncode(&c.caps, revLatest)
		return c
	}
	if o.Elicit != nil {
		c.caps.Elicitation = &ElicitationCapability{Form: &struct{}{}}
	}
	if o.Sample != nil {
		c.caps.Sampling = &SamplingCapability{}
	}
	if o.Roots != nil {
		c.caps.Roots = &RootsCapability{ListChanged: true}
	}
	return c
}

// Use puts middleware around every message of the client's sessions, the
// first outermost; call it before connecting. It sees what the client sends,
// with [Request.Outgoing] true: each request, "initialize" and
// "server/discover" too, and again in each round with the server's questions
// answered; and each notification but "notifications/cancelled", which belongs
// to its request. The result of such a request is a [json.RawMessage]. Requests
// that the cache answers are seen as well, though nothing is sent. It sees
// what the server sends with Outgoing false: requests, the questions of a
// modern server as if they were requests, and notifications.
//
// Middleware may set other Params, refuse, answer itself, or call the next
// handler more than once, which sends a request under a new id. What the
// protocol itself has in _meta is added after it and never seen. That
// subscriptions hear of changes does not depend on it.
func (c *Client) Use(middleware ...Middleware) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range slices.Backward(middleware) {
		c.handler = m(c.handler)
	}
}

// pass hands a message to the middleware.
func (c *Client) pass(ctx context.Context, req *Request) (any, error) {
	c.mu.Lock()
	h := c.handler
	c.mu.Unlock()
	return h(ctx, req)
}

// ServerInfo is what a server said of itself when it was connected.
//
// It can be stored as JSON and given to [Client.ConnectKnown].
type ServerInfo struct {
	Implementation
	ProtocolVersion string             `json:"protocolVersion"`        // the revision that is spoken
	Instructions    string             `json:"instructions,omitempty"` // for the model
	Capabilities    ServerCapabilities `json:"capabilities"`
}

// A ClientSession is a connection to one server. Its methods may be called
// concurrently. An [*Error] that they return is the server's answer; every
// other error arose here.
type ClientSession struct {
	life *life // nil without Restart
	link *link
	opts CallOptions
}

// CallOptions change how calls are made; see [ClientSession.With].
type CallOptions struct {
	// Timeout and MaxTimeout, when not 0, replace those of [ClientOptions].
	// A Timeout beyond the MaxTimeout there is the MaxTimeout, too.
	Timeout, MaxTimeout time.Duration
	// Progress gets the progress of the call, in order, before the call
	// returns. It runs on the caller's goroutine.
	Progress func(ProgressParams)
	// Meta is sent with every request, beside what the protocol itself puts
	// there. A call fails when a key is not allowed or belongs to the protocol,
	// and when a trace context is malformed (2026-07-28 basic § _meta).
	Meta Meta
	// Insist sends calls that need a capability which the server did not
	// declare. Otherwise the typed methods of [ClientSession] send nothing then
	// and return an error that wraps [errors.ErrUnsupported].
	Insist bool
	// Fresh asks the server even where the session has a result that is still
	// good. A whole list that is asked for so is as consistent as the server
	// makes it. Calls with Meta of their own are always asked, too.
	Fresh bool
}

// link is the part of a session that all its views share.
type link struct {
	client *Client
	life   *life // nil without Restart
	core   *session
	unsure atomic.Bool   // what it speaks is only known from before
	turn   chan struct{} // holds one: who finds out, meanwhile
	// pause is that of a transport over which every request travels by
	// itself, else nil.
	pause func(failed int) (wait time.Duration, more bool)

	mu     sync.Mutex
	server ServerInfo
	rev    *revision    // spoken, or tried; nil while a modern server is looked for
	level  LoggingLevel // asked for with every modern request
	subs   map[*Subscription]bool
	subID  int64 // of the last one

	pagesDone []string      // ids of pages that the user visited, and nobody asked for yet
	pageDone  chan struct{} // closed when there is another one, if someone waits

	cache   cache
	outputs outputSchemas
}

// Connect opens a connection of t and finds out what the server speaks: it
// asks for 2026-07-28 first, and turns to initialize when the answer is not
// one of that revision. A server that dies of the question is started once
// more. ctx bounds the opening only; when it fails, a child process is stopped
// before Connect returns, which may take a few seconds more.
func (c *Client) Connect(ctx context.Context, t Transport) (*ClientSession, error) {
	cs, err := c.connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	return cs.lasting(t), nil
}

// connect opens and negotiates; life, if not nil, is what the connection is
// part of.
func (c *Client) connect(ctx context.Context, t Transport, life *life) (*ClientSession, error) {
	cs, err := c.open(ctx, t, life)
	if err != nil {
		return nil, err
	}
	probed, err := cs.negotiate(ctx)
	if probed && errors.Is(err, ErrClosed) && ctx.Err() == nil {
		cs.link.core.close(nil)
		again, openErr := c.open(ctx, t, life)
		if openErr != nil {
			return nil, errors.Join(err, openErr)
		}
		cs, err = again, again.initialize(ctx)
	}
	if err != nil {
		cs.link.core.close(nil) // nothing that waits to be written matters
		return nil, err
	}
	return cs, nil
}

// ConnectKnown is Connect for a server that was connected before: known is
// what its [ClientSession.Server] returned then, which may have been stored as
// JSON meanwhile. It does not ask what the server speaks: nothing at all is
// sent to a server of 2026-07-28, and initialize to an older one. If it turns
// out that the server speaks something else now, because it refuses the
// version of a call or initialize, that is negotiated as by Connect. A nil known, or one
// of a version that the client does not speak, is as good as none.
func (c *Client) ConnectKnown(ctx context.Context, t Transport, known *ServerInfo) (*ClientSession, error) {
	if known == nil || !slices.Contains(c.revs, revisionOf(known.ProtocolVersion)) {
		return c.Connect(ctx, t)
	}
	cs, err := c.reconnect(ctx, t, nil, known)
	if err != nil {
		return nil, err
	}
	return cs.lasting(t), nil
}

// reconnect opens a connection to a server that is known.
func (c *Client) reconnect(ctx context.Context, t Transport, life *life, known *ServerInfo) (*ClientSession, error) {
	cs, err := c.open(ctx, t, life)
	if err != nil {
		return nil, err
	}
	rev := revisionOf(known.ProtocolVersion)
	if rev.modern {
		cs.link.met(*known, rev)
		cs.link.turn = make(chan struct{}, 1)
		cs.link.unsure.Store(true)
		return cs, nil
	}
	err = cs.initialize(ctx)
	var refused *Error
	if newest := c.revs[len(c.revs)-1]; errors.As(err, &refused) && newest.modern {
		if other := cs.discover(ctx, newest); other == nil {
			err = nil
		} else {
			err = errors.Join(err, other)
		}
	}
	if err != nil {
		cs.link.core.close(nil)
		return nil, err
	}
	return cs, nil
}

// negotiate finds out what the server speaks. probed says that it was asked
// for a modern revision in vain.
func (cs *ClientSession) negotiate(ctx context.Context) (probed bool, err error) {
	c := cs.link.client
	if newest := c.revs[len(c.revs)-1]; newest.modern {
		err := cs.discover(ctx, newest)
		old := namesOld(err, c.revs) || !isModernError(err) && cs.link.mayBeOld(err)
		if err == nil || ctx.Err() != nil || c.revs[0].modern || !old {
			return false, err
		}
		c.logger().Info("mcp: not a server of 2026-07-28", "error", err)
		probed = true
	}
	return probed, cs.initialize(ctx)
}

func (c *Client) logger() *slog.Logger {
	if c.opts.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.opts.Logger
}

// open makes a session that has negotiated nothing yet. It outlives ctx.
func (c *Client) open(ctx context.Context, t Transport, life *life) (*ClientSession, error) {
	conn, err := t.Connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{client: c, life: life, cache: cache{max: c.opts.CacheSize}}
	if t, ok := t.(perRequest); ok {
		l.pause = t.pause
	}
	l.core = newSession(context.WithoutCancel(ctx), l, c.opts.Logger)
	l.core.stray = c.opts.Stray
	if conn, ok := conn.(interface{ onRenewed(func()) }); ok {
		conn.onRenewed(func() { go l.renewed() })
	}
	l.core.start(conn)
	return &ClientSession{life: life, link: l}, nil
}

// A life is a session that outlasts its connections.
type life struct {
	client    *Client
	transport Transport
	ctx       context.Context // ends with Close
	stop      context.CancelFunc
	turn      chan struct{} // holds one: who opens the next connection

	mu    sync.Mutex
	link  *link     // the newest connection
	began time.Time // when it was tried to open
	tries int       // in a row that did not last
}

const (
	maxRestarts  = 5                      // tries to open a connection, a call
	restartPause = 100 * time.Millisecond // before the second, and doubled each time
	restartMax   = 10 * time.Second
	restartCalm  = time.Minute // a connection that lasted that long did work
)

// lasting gives a new session the life that its client wants for it.
func (cs *ClientSession) lasting(t Transport) *ClientSession {
	l := cs.link
	if !l.client.opts.Restart {
		return cs
	}
	lf := &life{client: l.client, transport: t, turn: make(chan struct{}, 1), link: l, began: time.Now(), tries: 1}
	lf.ctx, lf.stop = context.WithCancel(context.Background())
	l.mu.Lock()
	l.life = lf
	l.mu.Unlock()
	return &ClientSession{life: lf, link: l, opts: cs.opts}
}

func (lf *life) newest() *link {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	return lf.link
}

// lost reports whether no more answers can come.
func (l *link) lost() bool {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	return l.core.closed || l.core.deaf
}

// survives reports whether what ended by err goes on when the connection is
// opened again.
func (l *link) survives(err error) bool {
	l.mu.Lock()
	lf := l.life
	l.mu.Unlock()
	return lf != nil && lf.ctx.Err() == nil && errors.Is(err, ErrClosed)
}

// live returns the session on a connection that is there, which it opens
// again if it was lost and the client wants that.
func (cs *ClientSession) live(ctx context.Context) (*ClientSession, error) {
	if cs.life == nil {
		return cs, nil
	}
	l, err := cs.life.revive(ctx)
	if err != nil {
		return nil, err
	}
	if l == cs.link {
		return cs, nil
	}
	return &ClientSession{life: cs.life, link: l, opts: cs.opts}, nil
}

// revive returns the newest connection, a new one if it was lost
// (2026-07-28 basic/transports/stdio § Unexpected Termination). Who waits for
// the connection does the work, so that nothing runs in the background.
func (lf *life) revive(ctx context.Context) (*link, error) {
	if l := lf.newest(); !l.lost() || lf.ctx.Err() != nil {
		return l, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lf.ctx, cancel)()
	select {
	case lf.turn <- struct{}{}:
		defer func() { <-lf.turn }()
	case <-ctx.Done():
		return nil, lf.ended(ctx.Err())
	}
	old := lf.newest()
	if !old.lost() {
		return old, nil
	}
	var err error
	for n := 0; n < maxRestarts && ctx.Err() == nil; n++ {
		if err = lf.pause(ctx); err != nil {
			break
		}
		var cs *ClientSession
		if cs, err = lf.reopen(ctx, old); err == nil {
			return cs.link, nil
		}
		lf.client.logger().Warn("mcp: the connection cannot be opened again", "error", err)
	}
	return nil, fmt.Errorf("mcp: the connection was lost and cannot be opened again: %w", lf.ended(err))
}

// ended turns an error into ErrClosed if it came because of Close.
func (lf *life) ended(err error) error {
	if lf.ctx.Err() != nil {
		return ErrClosed
	}
	return err
}

// pause waits until the connection may be opened again: at once if it lasted,
// after ever more time if it did not.
func (lf *life) pause(ctx context.Context) error {
	lf.mu.Lock()
	if time.Since(lf.began) > restartCalm {
		lf.tries = 0
	}
	wait := time.Duration(0)
	if lf.tries > 1 {
		wait = min(restartPause<<min(lf.tries-2, 10), restartMax)
	}
	lf.tries++
	lf.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	lf.mu.Lock()
	defer lf.mu.Unlock()
	lf.began = time.Now()
	return nil
}

// reopen opens the connection again and takes over what old left: the level
// of logging, the subscriptions. A server that was legacy is not asked whether
// it is modern now.
func (lf *life) reopen(ctx context.Context, old *link) (cs *ClientSession, err error) {
	old.core.close(nil)
	known := old.about()
	if rev := old.revision(); rev != nil && !rev.modern {
		cs, err = lf.client.reconnect(ctx, lf.transport, lf, &known)
	} else {
		cs, err = lf.client.connect(ctx, lf.transport, lf)
	}
	if err != nil {
		return nil, err
	}
	l := cs.link
	old.mu.Lock()
	level, subs := old.level, old.subs
	old.mu.Unlock()
	l.mu.Lock()
	l.level = level
	l.mu.Unlock()
	cs.setLevelAgain(ctx, level)
	lf.mu.Lock()
	closed := lf.ctx.Err() != nil
	if !closed {
		lf.link = l
	}
	lf.mu.Unlock()
	if closed {
		l.core.close(nil)
		return nil, ErrClosed
	}
	lf.client.logger().Info("mcp: the connection was lost and is open again")
	old.mu.Lock()
	old.subs = nil
	old.mu.Unlock()
	for sub := range subs {
		sub.again(lf.ctx, cs) // not the business of who calls just now
	}
	return cs, nil
}

// setLevelAgain tells a legacy server the level of logging that it forgot.
func (cs *ClientSession) setLevelAgain(ctx context.Context, level LoggingLevel) {
	if level != "" && !cs.link.revision().modern {
		cs.call(ctx, methodSetLevel, &SetLevelParams{Level: level}, nil) // what it says makes no difference
	}
}

// renewed sets again what a legacy server has forgotten with its session,
// when the transport has opened another one: the level of logging, the
// subscriptions.
func (l *link) renewed() {
	l.mu.Lock()
	level, subs := l.level, maps.Clone(l.subs)
	l.mu.Unlock()
	l.changed(Change{Method: notifyToolsChanged})
	cs := &ClientSession{link: l}
	cs.setLevelAgain(l.core.ctx, level)
	for sub := range subs {
		sub.again(l.core.ctx, cs)
	}
}

// isModernError reports whether an error can only come from a server that
// knows 2026-07-28 (its basic/transports/stdio § Backward Compatibility).
func isModernError(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		switch e.Code {
		case CodeHeaderMismatch, CodeMissingClientCapability, CodeUnsupportedProtocolVersion:
			return true
		}
	}
	return errors.Is(err, errNoCommonVersion)
}

var errNoCommonVersion = errors.New("mcp: no protocol version in common")

// A noCommonVersion is errNoCommonVersion with what a server supports instead.
type noCommonVersion struct{ supported []string }

func (e *noCommonVersion) Error() string {
	return fmt.Sprintf("%v: the server supports %q", errNoCommonVersion, e.supported)
}

func (e *noCommonVersion) Unwrap() error { return errNoCommonVersion }

// namesOld reports whether a server that does not speak a modern revision here
// lists an earlier one of revs: it knows of 2026-07-28, and is asked to
// initialize all the same.
func namesOld(err error, revs []*revision) bool {
	supported := supportedVersions(err)
	var none *noCommonVersion
	if errors.As(err, &none) {
		supported = none.supported
	}
	return slices.ContainsFunc(revs, func(rev *revision) bool { return !rev.modern && slices.Contains(supported, rev.version) })
}

// A perRequest transport is one over which every request travels by itself,
// as over HTTP: a server that does not answer is not taken for an old one, and
// one request can be lost while the connection goes on (2026-07-28
// basic/transports/streamable-http § Backward Compatibility).
type perRequest interface {
	// pause returns how long to wait before a subscription that was lost is
	// taken out again, and whether it is, when that has failed so often.
	pause(failed int) (wait time.Duration, more bool)
}

// mayBeOld reports whether a server of an earlier revision may have answered
// the probe with this error.
func (l *link) mayBeOld(err error) bool {
	var status interface{ unknownRevision() bool } // of an HTTP status
	var failed *CallError
	switch {
	case errors.As(err, &status):
		return status.unknownRevision()
	case errors.As(err, &failed): // the network, or the credentials
		return false
	case errors.Is(err, context.DeadlineExceeded):
		return l.pause == nil
	}
	return true
}

// discover asks whether the server speaks a modern revision. One that does
// not like the version, but lists it, is asked once more.
func (cs *ClientSession) discover(ctx context.Context, rev *revision) error {
	var d DiscoverResult
	l := cs.link
	probe := *cs
	if l.pause == nil {
		probe.opts = CallOptions{Timeout: l.client.opts.ProbeTimeout, MaxTimeout: l.client.opts.ProbeTimeout}
	}
	raw, err := probe.roundTrip(ctx, rev, methodDiscover, nil)
	if listed := listedVersion(err, l.client.revs); listed != nil {
		raw, err = probe.roundTrip(ctx, listed, methodDiscover, nil)
	}
	if err == nil {
		err = decodeAt(raw, &d, rev, false)
	}
	if err != nil {
		return err
	}
	if len(d.SupportedVersions) == 0 {
		return errors.New("mcp: server/discover: the answer has no supportedVersions")
	}
	for _, known := range slices.Backward(l.client.revs) {
		if known.modern && slices.Contains(d.SupportedVersions, known.version) {
			info := ServerInfo{ProtocolVersion: known.version, Instructions: d.Instructions, Capabilities: d.Capabilities}
			d.Meta.Get(metaServerInfo, &info.Implementation) // optional, and for show only
			l.met(info, known)
			return nil
		}
	}
	return &noCommonVersion{d.SupportedVersions}
}

// listedVersion returns the newest modern revision of revs that a refusal of
// another says the server supports.
func listedVersion(err error, revs []*revision) *revision {
	supported := supportedVersions(err)
	for _, rev := range slices.Backward(revs) {
		if rev.modern && slices.Contains(supported, rev.version) {
			return rev
		}
	}
	return nil
}

// supportedVersions is what the refusal of a version says is supported.
func supportedVersions(err error) []string {
	var peer *Error
	var data UnsupportedVersionData
	if !errors.As(err, &peer) || peer.Code != CodeUnsupportedProtocolVersion || decodeAt(peer.Data, &data, revLatest, false) != nil {
		return nil
	}
	return data.Supported
}

// initialize opens a legacy session (2025-11-25 basic/lifecycle).
func (cs *ClientSession) initialize(ctx context.Context) error {
	l := cs.link
	var newest *revision
	for _, rev := range l.client.revs {
		if !rev.modern {
			newest = rev
		}
	}
	l.speak(newest)
	params, err := encodeAt(nil, &InitializeParams{
		ProtocolVersion: newest.version, Capabilities: l.client.caps, ClientInfo: l.client.info,
	}, newest)
	if err != nil {
		return err
	}
	raw, err := cs.roundTrip(ctx, newest, methodInitialize, params)
	var r InitializeResult
	if err == nil {
		err = decodeAt(raw, &r, newest, false)
	}
	if err != nil {
		return err
	}
	rev := revisionOf(r.ProtocolVersion)
	if rev == nil || rev.modern || !slices.Contains(l.client.revs, rev) {
		return fmt.Errorf("%w: the server speaks %q", errNoCommonVersion, r.ProtocolVersion)
	}
	l.met(ServerInfo{r.ServerInfo, rev.version, r.Instructions, r.Capabilities}, rev)
	l.core.keepAlive(l.client.opts.KeepAlive)
	return cs.notify(ctx, notifyInitialized, nil)
}

// met keeps what is known of the server, and speaks its revision.
func (l *link) met(info ServerInfo, rev *revision) {
	info.Icons = usableIcons(info.Icons)
	l.mu.Lock()
	l.server = info
	l.mu.Unlock()
	l.speak(rev)
}

func (l *link) about() ServerInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// speak sets the revision of all that follows.
func (l *link) speak(rev *revision) {
	l.mu.Lock()
	l.rev = rev
	l.mu.Unlock()
	l.core.mu.Lock()
	l.core.batches = rev.batches
	l.core.mu.Unlock()
}

func (l *link) revision() *revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rev
}

// Server returns what the server said of itself.
func (cs *ClientSession) Server() *ServerInfo {
	l := cs.link
	if cs.life != nil {
		l = cs.life.newest()
	}
	info := l.about()
	return &info
}

// With returns the same session with other options for the calls made
// through it.
func (cs *ClientSession) With(opts CallOptions) *ClientSession {
	return &ClientSession{life: cs.life, link: cs.link, opts: opts}
}

// Close ends the session. Calls that wait fail with [ErrClosed]. A server
// that runs as a child process is stopped, which may take a few seconds.
func (cs *ClientSession) Close() error {
	l := cs.link
	if cs.life != nil {
		cs.life.stop()
		l = cs.life.newest()
	}
	l.core.conn.flushWithin(flushTime)
	err := l.core.close(nil)
	l.ended() // of a connection that had been lost before
	return err
}

// Wait waits until the session has ended and returns why, nil when one of the
// sides closed it. With Restart only Close ends it.
func (cs *ClientSession) Wait() error {
	if cs.life == nil {
		return cs.link.core.wait()
	}
	<-cs.life.ctx.Done()
	cs.life.newest().core.wait()
	return nil
}

// OnClose registers f to run once when the session has ended, whoever ended it,
// with the connection closed; on a session that has ended f runs at once. What
// was registered last runs first. Close and Wait wait until all have run, but
// no longer than 5 seconds, and not when one of them is who calls. Panics are
// logged. With Restart it is the end of the connection there is, though
// another one may follow.
func (cs *ClientSession) OnClose(f func()) {
	l := cs.link
	if cs.life != nil {
		l = cs.life.newest()
	}
	l.core.onClose(f)
}

// Call sends any request and decodes its result into result, if that is not
// nil. params encode to a JSON object; nil is none. What the protocol puts
// into _meta is added. A [json.RawMessage] as result keeps it as it came.
func (cs *ClientSession) Call(ctx context.Context, method string, params, result any) error {
	cs, err := cs.live(ctx)
	if err != nil {
		return fmt.Errorf("mcp: %s: %w", method, err)
	}
	return cs.call(ctx, method, params, result)
}

// call is Call on the connection that cs has.
func (cs *ClientSession) call(ctx context.Context, method string, params, result any) error {
	return cs.surely(ctx, method, func() error { return cs.callAt(ctx, cs.link.revision(), method, params, result) })
}

// surely does what asks the server for something, and does it again if the
// server refuses the revision that was only known from before: then it has
// done nothing.
func (cs *ClientSession) surely(ctx context.Context, method string, ask func() error) error {
	if !cs.link.unsure.Load() {
		return ask()
	}
	if err := cs.makeSure(ctx, false); err != nil {
		return doing(method, err)
	}
	err := ask()
	var refused *Error
	if errors.As(err, &refused) && refused.Code == CodeUnsupportedProtocolVersion {
		if other := cs.makeSure(ctx, true); other != nil {
			return errors.Join(err, other)
		}
		return ask()
	}
	return err
}

// makeSure negotiates with a server that is not what it was known as, if wrong
// says so and no other call has done it. It waits for one that does it now.
func (cs *ClientSession) makeSure(ctx context.Context, wrong bool) error {
	l := cs.link
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !wrong || !l.unsure.Load() {
		return nil
	}
	_, err := cs.negotiate(ctx)
	if err == nil {
		l.unsure.Store(false)
	}
	return err
}

func (cs *ClientSession) callAt(ctx context.Context, rev *revision, method string, params, result any) error {
	encoded, err := encodeParams(method, params, rev)
	if err != nil {
		return err
	}
	if v := reflect.ValueOf(result); result != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return fmt.Errorf("mcp: %s: the result goes into a non-nil pointer, not a %T", method, result)
	}
	raw, err := cs.converse(ctx, rev, method, encoded)
	if err != nil || result == nil {
		return err
	}
	if err := decodeAt(raw, result, rev, false); err != nil {
		return fmt.Errorf("mcp: %s: invalid result: %w", method, err)
	}
	return nil
}

// Notify sends any notification. params encode to a JSON object; nil is none.
func (cs *ClientSession) Notify(ctx context.Context, method string, params any) error {
	cs, err := cs.live(ctx)
	if err != nil {
		return fmt.Errorf("mcp: %s: %w", method, err)
	}
	return cs.notify(ctx, method, params)
}

// notify is Notify on the connection that cs has.
func (cs *ClientSession) notify(ctx context.Context, method string, params any) error {
	rev := cs.link.revision()
	encoded, err := encodeParams(method, params, rev)
	if err != nil {
		return err
	}
	req, err := cs.outgoing(rev, method, encoded)
	if err != nil {
		return err
	}
	core := cs.link.core
	req.next = func(ctx context.Context, req *Request) (any, error) {
		if req.Params == nil {
			return nil, core.notify(ctx, core.out, req.Method, nil, rev)
		}
		return nil, core.notify(ctx, core.out, req.Method, req.Params, rev)
	}
	_, err = cs.link.pass(ctx, req)
	return err
}

// outgoing makes a message that the client sends, with the caller's _meta.
func (cs *ClientSession) outgoing(rev *revision, method string, params []byte) (*Request, error) {
	if method == "" {
		return nil, errors.New("mcp: a message needs a method")
	}
	req := &Request{Method: method, Params: params, Outgoing: true, session: cs.link.core, out: cs.link.core.out, rev: rev}
	view, bad := scanParams(params)
	if bad != nil {
		return nil, fmt.Errorf("mcp: %s: %s", method, bad.Message)
	}
	req.params = view
	switch method {
	case methodToolsCall, methodPromptsGet:
		req.Name, _ = stringValue(view.name)
		req.Arguments = view.arguments
	case methodResourcesRead, methodSubscribe, methodUnsubscribe:
		req.Name, _ = stringValue(view.uri)
	}
	return req, nil
}

// pass hands a message that the client sends to the middleware, and encodes
// what comes back.
func (l *link) pass(ctx context.Context, req *Request) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.core.log.Error("mcp: panic in middleware", "method", req.Method, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("mcp: %s: middleware panicked: %v", req.Method, p)
		}
	}()
	result, err := l.client.pass(ctx, req)
	if err != nil {
		return nil, err
	}
	switch r := result.(type) {
	case nil:
		return json.RawMessage("{}"), nil
	case json.RawMessage:
		return r, nil
	}
	if raw, err = encodeAt(nil, result, req.rev); err != nil {
		return nil, fmt.Errorf("mcp: %s: result of middleware: %w", req.Method, err)
	}
	return raw, nil
}

// roundTrip sends one request and returns the raw result.
func (cs *ClientSession) roundTrip(ctx context.Context, rev *revision, method string, params []byte) (json.RawMessage, error) {
	core := cs.link.core
	core.mu.Lock()
	core.lastID++
	id := IntID(core.lastID)
	core.mu.Unlock()
	return cs.request(ctx, rev, method, params, id)
}

// request sends a request under an id through the middleware.
func (cs *ClientSession) request(ctx context.Context, rev *revision, method string, params []byte, id ID) (json.RawMessage, error) {
	if len(cs.opts.Meta) > 0 {
		err := checkOwnMeta(cs.opts.Meta)
		if err == nil {
			params, err = withMeta(params, rev, cs.opts.Meta)
		}
		if err != nil {
			return nil, doing(method, err)
		}
	}
	req, err := cs.outgoing(rev, method, params)
	if err != nil {
		return nil, err
	}
	req.ID = id
	var sent atomic.Bool
	req.next = func(ctx context.Context, req *Request) (any, error) {
		if sent.Swap(true) && method != methodListen { // a subscription is known by its id
			return cs.send(ctx, req, ID{})
		}
		return cs.send(ctx, req, id)
	}
	return cs.link.pass(ctx, req)
}

// send sends a request that went through the middleware, and waits.
func (cs *ClientSession) send(ctx context.Context, req *Request, id ID) (json.RawMessage, error) {
	l, method := cs.link, req.Method
	timeout, limit := cs.opts.limits(&l.client.opts)
	spec := callSpec{
		method: method, id: id, progress: cs.opts.Progress, timeout: timeout, limit: limit,
		keep: method == methodInitialize || method == methodDiscover,
	}
	var err error
	if spec.params, err = l.stamp(req, ID{}); err != nil {
		return nil, doing(method, err)
	}
	spec.withToken = func(id ID) []byte {
		p, _ := l.stamp(req, id) // did not fail above
		return p
	}
	key := l.cache.keyOf(req)
	if key != "" && !cs.opts.Fresh {
		if raw := l.cache.get(key); raw != nil {
			return raw, nil
		}
	}
	before := l.cache.changes(method)
	raw, err := l.core.call(ctx, l.core.out, spec)
	if err == nil && key != "" {
		l.cache.put(key, req, raw, before)
	}
	return raw, err
}

// A cache keeps results of a session while the server says that they are
// fresh, and no notification says otherwise
// (2026-07-28 server/utilities/caching). Since it belongs to one session,
// nothing in it is ever shared, whatever its scope.
type cache struct {
	max int64 // bytes; not positive keeps nothing

	mu      sync.Mutex
	size    int64
	entries map[string]*lru.Element
	order   lru.List          // of *cached, used last in front
	stale   map[string]uint64 // by method: how often its results became stale
}

type cached struct {
	key, method, uri string
	raw              json.RawMessage
	until            time.Time
}

const (
	maxCached    = 1000 // results in a cache
	maxCachedFor = 365 * 24 * time.Hour
)

// keyOf returns under what the result of a request may be kept: its method
// and its params as they are sent, but for the protocol's own _meta. "" is
// not at all; so it is for a retry with answers.
func (c *cache) keyOf(req *Request) string {
	v := req.params
	if c.max <= 0 || !req.rev.modern || !cacheable(req.Method) {
		return ""
	}
	if !v.isOf(req.Params) { // middleware has put others there
		view, bad := scanParams(req.Params)
		if bad != nil {
			return ""
		}
		v = view
	}
	if v.meta != nil || v.inputResponses != nil || v.requestState != nil {
		return ""
	}
	if string(req.Params) == "{}" {
		return req.Method
	}
	return req.Method + string(req.Params)
}

// get returns a result that is fresh, for the caller to own; nil if there is
// none.
func (c *cache) get(key string) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		return nil
	}
	if !time.Now().Before(e.Value.(*cached).until) {
		c.remove(e)
		return nil
	}
	c.order.MoveToFront(e)
	return bytes.Clone(e.Value.(*cached).raw)
}

// put keeps a result if it may be, in place of those used longest ago. It may
// not if it became stale on its way: after the request was sent, when the
// count was before.
func (c *cache) put(key string, req *Request, raw json.RawMessage, before uint64) {
	var ttl int64
	if decodeAt(rawMember(raw, "ttlMs"), &ttl, req.rev, false) != nil {
		ttl = 0 // absent or no integer
	}
	if typ := rawMember(raw, "resultType"); typ != nil && string(typ) != `"complete"` {
		ttl = 0
	}
	ttl = min(ttl, maxCachedFor.Milliseconds())
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[key]; old != nil {
		c.remove(old)
	}
	e := &cached{key: key, method: req.Method, raw: bytes.Clone(raw), until: time.Now().Add(time.Duration(ttl) * time.Millisecond)}
	if ttl <= 0 || c.stale[req.Method] != before || e.cost() > c.max {
		return
	}
	e.uri, _ = stringValue(rawMember(req.Params, "uri"))
	if c.entries == nil {
		c.entries = make(map[string]*lru.Element)
	}
	c.entries[key] = c.order.PushFront(e)
	for c.size += e.cost(); c.size > c.max || len(c.entries) > maxCached; {
		c.remove(c.order.Back())
	}
}

// cost is what an entry takes, about, in bytes.
func (e *cached) cost() int64 { return int64(len(e.raw)+len(e.key)+len(e.uri)) + 256 }

// remove takes an entry out, under c.mu.
func (c *cache) remove(e *lru.Element) {
	v := c.order.Remove(e).(*cached)
	delete(c.entries, v.key)
	c.size -= v.cost()
}

// changes counts how often results of a method became stale.
func (c *cache) changes(method string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stale[method]
}

// drop makes all results of these methods stale that pass the filter; nil is
// all.
func (c *cache) drop(which func(*cached) bool, methods ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stale == nil {
		c.stale = make(map[string]uint64)
	}
	for _, method := range methods {
		c.stale[method]++
	}
	for e := c.order.Front(); e != nil; {
		next, v := e.Next(), e.Value.(*cached)
		if slices.Contains(methods, v.method) && (which == nil || which(v)) {
			c.remove(e)
		}
		e = next
	}
}

// changed makes stale what a notification says is not as it was. The URI of
// an updated resource may be of one within that which was read.
func (l *link) changed(c Change) {
	switch c.Method {
	case notifyToolsChanged:
		l.cache.drop(nil, methodToolsList)
		l.outputs.forget()
	case notifyPromptsChanged:
		l.cache.drop(nil, methodPromptsList)
	case notifyResourcesChanged:
		l.cache.drop(nil, methodResourcesList, methodTemplatesList)
	case notifyResourceUpdated:
		l.cache.drop(func(v *cached) bool {
			return v.uri == c.URI || strings.HasPrefix(c.URI, strings.TrimSuffix(v.uri, "/")+"/")
		}, methodResourcesRead)
	}
}

// outputSchemas are the schemas of tools' structured content, by tool, as the
// newest listing had them.
type outputSchemas struct {
	mu    sync.Mutex
	known map[string]*outputSchema
	size  int // bytes of schemas
}

type outputSchema struct {
	raw      json.RawMessage
	compile  sync.Once
	compiled *Schema // nil if it cannot be
}

const (
	maxOutputs    = 10000    // tools whose output schema is known
	maxOutputSize = 16 << 20 // bytes of all of them
)

func (o *outputSchemas) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known, o.size = nil, 0
}

// learn takes what a listing says of a tool, unless the list has changed since
// it was asked for, when the count was before.
func (l *link) learn(tool *Tool, before uint64) {
	o := &l.outputs
	o.mu.Lock()
	defer o.mu.Unlock()
	if l.cache.changes(methodToolsList) != before {
		return
	}
	old := o.known[tool.Name]
	if old != nil {
		if bytes.Equal(old.raw, tool.OutputSchema) {
			return
		}
		o.size -= len(old.raw)
		delete(o.known, tool.Name)
	}
	if tool.OutputSchema == nil || len(o.known) >= maxOutputs || o.size+len(tool.OutputSchema) > maxOutputSize {
		return
	}
	if o.known == nil {
		o.known = make(map[string]*outputSchema)
	}
	o.known[tool.Name] = &outputSchema{raw: bytes.Clone(tool.OutputSchema)}
	o.size += len(tool.OutputSchema)
}

// checkOutput validates the structured content of a tool that is known to
// have an output schema. A schema that cannot be used, such as one that refers
// to another document, which is never fetched, is passed over
// (2026-07-28 server/tools § Output Schema, § Security Considerations).
func (l *link) checkOutput(tool string, r *CallToolResult) error {
	l.outputs.mu.Lock()
	o := l.outputs.known[tool]
	l.outputs.mu.Unlock()
	if o == nil || r.IsError {
		return nil
	}
	o.compile.Do(func() {
		var err error
		if o.compiled, err = CompileSchema(o.raw, nil); err != nil {
			o.compiled = nil
			l.core.log.Warn("mcp: results are not validated: the output schema cannot be used", "tool", tool, "error", err)
		}
	})
	switch {
	case o.compiled == nil:
		return nil
	case r.StructuredContent == nil:
		return errors.New("structuredContent is missing, though the tool has an output schema")
	}
	if err := o.compiled.Validate(r.StructuredContent); err != nil {
		return fmt.Errorf("structuredContent does not fit the tool's output schema: %w", err)
	}
	return nil
}

// limits returns how long a call may be silent, and how long it may take.
// Not positive is for ever.
func (o CallOptions) limits(all *ClientOptions) (timeout, limit time.Duration) {
	timeout, limit = all.Timeout, all.MaxTimeout
	if o.Timeout != 0 {
		timeout = o.Timeout
		if limit > 0 && (timeout < 0 || timeout > limit) {
			limit = timeout
		}
	}
	if o.MaxTimeout != 0 {
		limit = o.MaxTimeout
	}
	return timeout, limit
}

// stamp completes the params of a request by what the protocol has in _meta:
// the progress token, and on a modern revision who is asking
// (2026-07-28 basic § _meta).
func (l *link) stamp(req *Request, token ID) ([]byte, error) {
	if req.Params != nil && !hasShape(req.Params, "object") {
		return nil, errors.New("params must be a JSON object")
	}
	add := make(Meta)
	if !token.IsZero() {
		add[metaProgressToken] = json.RawMessage(token.raw)
	}
	if req.rev.modern {
		add.Set(metaProtocolVersion, req.rev.version)
		add.Set(metaClientCapabilities, json.RawMessage(mustEncode(&l.client.caps, req.rev)))
		add.Set(metaClientInfo, json.RawMessage(mustEncode(&l.client.info, req.rev)))
		l.mu.Lock()
		if l.level != "" {
			add.Set(metaLogLevel, l.level)
		}
		l.mu.Unlock()
	}
	return withMeta(req.Params, req.rev, add)
}

// checkOwnMeta checks what a caller puts into _meta
// (2026-07-28 basic § _meta).
func checkOwnMeta(m Meta) error {
	for key, value := range m {
		if !validTraceContext(key, value) {
			return fmt.Errorf("_meta.%s is malformed", key)
		}
	}
	return checkMetaKeys(m)
}

// withMeta returns params with more in their _meta; what add has counts.
func withMeta(params []byte, rev *revision, add Meta) ([]byte, error) {
	meta := make(Meta)
	var rest []byte
	if params != nil {
		rest = params[1 : len(params)-1]
	}
	if raw := rawMember(params, "_meta"); raw != nil {
		if err := decodeAt(raw, &meta, rev, true); err != nil {
			return nil, err
		}
		others, err := without(params, rev, "_meta")
		if err != nil {
			return nil, err
		}
		rest = others[1 : len(others)-1]
	}
	maps.Copy(meta, add)
	if len(meta) == 0 {
		return params, nil
	}
	dst := append([]byte{'{'}, rest...)
	if len(bytes.TrimSpace(rest)) > 0 {
		dst = append(dst, ',')
	}
	dst, err := encodeAt(append(dst, `"_meta":`...), meta, rev)
	return append(dst, '}'), err
}

// without returns a JSON object that lacks the members of these names.
func without(object []byte, rev *revision, names ...string) ([]byte, error) {
	if !slices.ContainsFunc(names, func(name string) bool { return rawMember(object, name) != nil }) {
		return object, nil
	}
	var members map[string]json.RawMessage
	if err := decodeAt(object, &members, rev, true); err != nil {
		return nil, err
	}
	for _, name := range names {
		delete(members, name)
	}
	return encodeAt(nil, members, rev)
}

// mustEncode encodes a value that always can be.
func mustEncode(v any, rev *revision) []byte {
	b, err := encodeAt(nil, v, rev)
	if err != nil {
		panic(err)
	}
	return b
}

// converse sends a request and, as often as a modern server asks for input,
// sends it again with the answers (2026-07-28 basic/patterns/mrtr).
func (cs *ClientSession) converse(ctx context.Context, rev *revision, method string, params []byte) (json.RawMessage, error) {
	send := params
	for round := 0; ; round++ {
		raw, err := cs.roundTrip(ctx, rev, method, send)
		if pages := cs.link.pagesNeeded(rev, err); pages != nil && round < cs.link.client.opts.MaxRounds {
			if done, failed := cs.visit(ctx, rev, pages); failed != nil {
				return nil, fmt.Errorf("mcp: %s: %w", method, failed)
			} else if done {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if !hasShape(raw, "object") {
			return nil, fmt.Errorf("mcp: %s: invalid result: not an object", method)
		}
		if !rev.modern {
			return raw, nil
		}
		member := rawMember(raw, "resultType")
		typ, _ := stringValue(member)
		switch {
		case member == nil || typ == "complete":
			return raw, nil
		case typ != "input_required" || !mayAsk(method):
			return nil, fmt.Errorf("mcp: %s: invalid result: resultType %s", method, member)
		case round == cs.link.client.opts.MaxRounds:
			return nil, fmt.Errorf("mcp: %s: the server asked for input more than %d times", method, round)
		}
		if send, err = cs.link.fulfil(ctx, rev, params, raw); err != nil {
			return nil, doing(method, err)
		}
	}
}

// pagesNeeded returns the pages that the user must visit before a request can
// succeed, as questions by their ids, if that is what err says and the client
// can show pages (2025-11-25 client/elicitation § URL Elicitation Required
// Error).
func (l *link) pagesNeeded(rev *revision, err error) InputRequests {
	var e *Error
	elicits := l.client.caps.Elicitation
	if rev != rev20251125 || elicits == nil || elicits.URL == nil || l.client.opts.Elicit == nil ||
		!errors.As(err, &e) || e.Code != CodeURLElicitationRequired || !hasShape(e.Data, "object") {
		return nil
	}
	var raw []json.RawMessage
	if decodeAt(rawMember(e.Data, "elicitations"), &raw, rev, false) != nil || len(raw) == 0 || len(raw) > maxPagesNeeded {
		return nil
	}
	pages := make(InputRequests)
	for _, params := range raw {
		var p ElicitParams
		if decodeAt(params, &p, rev, true) != nil || p.Mode != "url" {
			return nil
		}
		pages[p.ElicitationID] = InputRequest{methodElicit, params}
	}
	return pages
}

const (
	maxPagesNeeded = 100  // pages that one error may ask to be visited
	maxPagesDone   = 1000 // ids of visited pages that nobody has asked for
)

// visit asks the user to visit pages. If all agree it waits, no longer than
// the call may take, until the server says that it is done with each of them.
// done is false if one was refused.
func (cs *ClientSession) visit(ctx context.Context, rev *revision, pages InputRequests) (done bool, err error) {
	l := cs.link
	answers, err := l.answerAll(ctx, rev, pages)
	if err != nil {
		return false, err
	}
	for _, answer := range answers {
		if action, _ := stringValue(rawMember(answer, "action")); action != "accept" {
			return false, nil
		}
	}
	if _, limit := cs.opts.limits(&l.client.opts); limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	for {
		left, next := l.pagesLeft(pages)
		if left == 0 {
			return true, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false, fmt.Errorf("%d pages are not completed: %w", left, ctx.Err())
		case <-l.core.done.wait():
			return false, ErrClosed
		}
	}
}

// pagesLeft counts the pages that the server is not done with; next is closed
// when it is done with another one.
func (l *link) pagesLeft(pages InputRequests) (left int, next <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range pages {
		if !slices.Contains(l.pagesDone, id) {
			left++
		}
	}
	if left == 0 { // ids are not used twice
		l.pagesDone = slices.DeleteFunc(l.pagesDone, func(id string) bool { _, mine := pages[id]; return mine })
	}
	if l.pageDone == nil {
		l.pageDone = make(chan struct{})
	}
	return left, l.pageDone
}

// pageVisited keeps the id of a page that the server is done with: it may say
// so before the client has even looked at what it asked for. Ids that nobody
// asks for go when there are too many.
func (l *link) pageVisited(note *Request) {
	var p ElicitationCompleteParams
	if note.rev != rev20251125 || decodeAt(note.Params, &p, note.rev, true) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.pagesDone, p.ElicitationID) {
		return
	}
	if len(l.pagesDone) == maxPagesDone {
		l.pagesDone = slices.Delete(l.pagesDone, 0, 1)
	}
	l.pagesDone = append(l.pagesDone, p.ElicitationID)
	if l.pageDone != nil {
		close(l.pageDone)
		l.pageDone = nil
	}
}

// fulfil answers what an input_required result asks, all questions at once,
// and returns the params of the retry: those of the request, the answers, and
// the state as it came or not at all.
func (l *link) fulfil(ctx context.Context, rev *revision, params []byte, raw json.RawMessage) ([]byte, error) {
	var r InputRequiredResult
	if err := decodeAt(raw, &r, rev, false); err != nil {
		return nil, fmt.Errorf("invalid result: %w", err)
	}
	if r.InputRequests == nil && r.RequestState == nil {
		return nil, errors.New("invalid result: input_required without inputRequests and requestState")
	}
	answers, err := l.answerAll(ctx, rev, r.InputRequests)
	if err != nil {
		return nil, err
	}
	// What the caller itself may have answered belonged to the first round.
	if params, err = without(params, rev, "inputResponses", "requestState"); err != nil {
		return nil, err
	}
	var members [][]byte
	if len(params) > 2 {
		members = append(members, params[1:len(params)-1])
	}
	if answers != nil {
		encoded, err := encodeAt([]byte(`"inputResponses":`), answers, rev)
		if err != nil {
			return nil, err
		}
		members = append(members, encoded)
	}
	if r.RequestState != nil { // byte for byte
		members = append(members, append([]byte(`"requestState":`), rawMember(raw, "requestState")...))
	}
	return append(append([]byte{'{'}, bytes.Join(members, []byte{','})...), '}'), nil
}

// answerAll answers questions, all at once; nil for none. The first that
// fails ends the others, as do the caller and the end of the session.
func (l *link) answerAll(ctx context.Context, rev *revision, questions InputRequests) (InputResponses, error) {
	if questions == nil {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reply struct {
		key    string
		answer []byte
		err    error
	}
	replies := make(chan reply, len(questions))
	for key, q := range questions {
		go func() {
			r := reply{key, nil, errNoReturn}
			defer func() { replies <- r }() // deferred for a callback that does not return
			r.answer, r.err = l.answerSafely(ctx, key, q, rev)
		}()
	}
	answers := make(InputResponses, len(questions))
	for range questions {
		select {
		case a := <-replies:
			if a.err != nil {
				return nil, fmt.Errorf("input request %q: %w", a.key, local(a.err))
			}
			answers[a.key] = a.answer
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.core.done.wait():
			return nil, ErrClosed
		}
	}
	return answers, nil
}

// local turns an error meant for the peer into one that callers do not take
// for the peer's.
func local(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return errors.New(err.Error())
	}
	return err
}

// answerSafely answers a question of the server, which the middleware sees as
// a request, and encodes the answer.
func (l *link) answerSafely(ctx context.Context, key string, q InputRequest, rev *revision) (encoded []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.core.log.Error("mcp: panic in a callback", "method", q.Method, "panic", p)
			err = errors.New("the callback panicked")
		}
	}()
	req := &Request{Method: q.Method, ID: StringID(key), Params: q.Params, session: l.core, out: l.core.out, rev: rev}
	var bad *Error
	if req.params, bad = scanParams(q.Params); bad != nil {
		return nil, bad
	}
	req.next = l.answer
	result, err := l.client.pass(ctx, req)
	if err != nil {
		return nil, err
	}
	return encodeAt(nil, result, rev)
}

// answer asks the client's callbacks: for the requests of a legacy server and
// for the questions of a modern one alike. What was not declared is not served.
func (l *link) answer(ctx context.Context, req *Request) (any, error) {
	method, params, rev := req.Method, req.Params, req.rev
	if !rev.modern && !methodDefined(method, rev, false) {
		return nil, methodNotFound(method)
	}
	o, caps := &l.client.opts, &l.client.caps
	switch {
	case method == methodElicit && o.Elicit != nil && caps.Elicitation != nil:
		return l.elicit(ctx, params, rev)
	case method == methodCreateMessage && o.Sample != nil && caps.Sampling != nil:
		return l.sample(ctx, params, rev)
	case method == methodRootsList && o.Roots != nil && caps.Roots != nil:
		roots, err := o.Roots(ctx)
		if err != nil {
			return nil, err
		}
		for _, root := range roots {
			if err := checkRoot(root.URI); err != nil {
				return nil, err
			}
		}
		return &ListRootsResult{Roots: roots}, nil
	}
	return nil, methodNotFound(method)
}

// checkRoot refuses a root that is no file or could be read as another one
// (2025-11-25 client/roots § Security Considerations).
func checkRoot(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || !strings.HasPrefix(uri, "file://") {
		return fmt.Errorf("mcp: the root %q is not a file:// URI", uri)
	}
	if slices.Contains(strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return fmt.Errorf("mcp: the root %q has a .. in its path", uri)
	}
	return nil
}

// sample runs the model.
func (l *link) sample(ctx context.Context, params json.RawMessage, rev *revision) (any, error) {
	var p CreateMessageParams
	if err := decodeAt(params, &p, rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	if missing := lacking(l.client.caps, InputRequest{methodCreateMessage, params}); missing != nil {
		return nil, Errorf(CodeInvalidParams, "sampling with tools was not declared")
	}
	if err := checkToolResults(p.Messages); err != nil {
		return nil, Errorf(CodeInvalidParams, "params.messages: %v", err)
	}
	r, err := l.client.opts.Sample(ctx, &p)
	if err == nil && r == nil {
		err = errors.New("mcp: Sample returned nothing")
	}
	return r, err
}

// elicit asks the user, and checks that accepted content fits the form.
func (l *link) elicit(ctx context.Context, params json.RawMessage, rev *revision) (any, error) {
	var p ElicitParams
	if err := decodeAt(params, &p, rev, true); err != nil {
		return nil, Errorf(CodeInvalidParams, "%v", err)
	}
	if missing := lacking(l.client.caps, InputRequest{methodElicit, params}); missing != nil {
		return nil, Errorf(CodeInvalidParams, "this mode of elicitation was not declared")
	}
	var form *Schema // nil for a page
	if p.Mode == "url" {
		// what else a user might be led to is no page
		if u, err := url.Parse(p.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, Errorf(CodeInvalidParams, "params.url is not the address of a page")
		}
	} else {
		var err error
		if form, err = CompileSchema(p.RequestedSchema, nil); err != nil {
			return nil, Errorf(CodeInvalidParams, "params.requestedSchema: %v", err)
		}
	}
	r, err := l.client.opts.Elicit(ctx, &p)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, errors.New("mcp: Elicit returned nothing")
	case r.Action != "accept" && r.Action != "decline" && r.Action != "cancel":
		return nil, fmt.Errorf("mcp: Elicit returned the action %q", r.Action)
	case r.Action != "accept" || form == nil: // there is no content then
		return &ElicitResult{Action: r.Action, Meta: r.Meta}, nil
	}
	content := form.applyDefaults(r.Content)
	if err := form.Validate(content); err != nil {
		return nil, fmt.Errorf("mcp: the content that Elicit returned does not fit the form: %w", err)
	}
	return &ElicitResult{Action: r.Action, Content: content, Meta: r.Meta}, nil
}

// admit takes what the server sends. A modern server sends no requests
// (2026-07-28 basic/patterns).
func (l *link) admit(req *Request) *Error {
	if req.rev = l.revision(); req.rev == nil {
		if req.rev = l.client.revs[0]; !req.rev.modern {
			req.rev = revLegacy
		}
	}
	if req.ID.IsZero() {
		l.route(req)
	}
	if !req.ID.IsZero() && req.rev.modern {
		return Errorf(CodeMethodNotFound, "a server of %s sends no requests", req.rev.version)
	}
	return nil
}

func (l *link) inline(*Request) bool { return false }

// mayAnswer: a client of a modern server sends no responses.
func (l *link) mayAnswer() bool {
	rev := l.revision()
	return rev != nil && !rev.modern
}

func (l *link) drain() {}

func (l *link) ended() {
	lost := l.survives(ErrClosed)
	l.mu.Lock()
	subs := maps.Clone(l.subs)
	if !lost {
		l.subs = nil
	}
	l.mu.Unlock()
	for sub := range subs {
		if sub.stays(l) {
			sub.over(l, ErrClosed)
		}
	}
}

func (l *link) handle(ctx context.Context, req *Request) (any, error) {
	req.next = l.receive
	return l.client.pass(ctx, req)
}

// receive serves what came through the middleware.
func (l *link) receive(ctx context.Context, req *Request) (any, error) {
	if !req.ID.IsZero() {
		if req.Method == methodPing {
			return nil, nil
		}
		return l.answer(ctx, req)
	}
	o := &l.client.opts
	if o.Notify != nil { // whatever becomes of Log
		defer o.Notify(ctx, req.Method, req.Params)
	}
	if req.Method == notifyMessage && o.Log != nil {
		var p LogParams
		if err := decodeAt(req.Params, &p, req.rev, false); err != nil {
			return nil, err
		}
		o.Log(ctx, &p)
	}
	return nil, nil
}

func (l *link) appendResult(dst []byte, req *Request, result any) ([]byte, error) {
	return encodeResult(dst, result, req.rev, nil)
}

// offers reports whether the server declared what a method needs, by the
// capability's name (2026-07-28 basic/versioning; 2025-11-25 basic/lifecycle §
// Capability Negotiation).
func (l *link) offers(method string) (capability string, ok bool) {
	caps := l.about().Capabilities
	switch method {
	case methodToolsList, methodToolsCall:
		return "tools", caps.Tools != nil
	case methodResourcesList, methodTemplatesList, methodResourcesRead:
		return "resources", caps.Resources != nil
	case methodPromptsList, methodPromptsGet:
		return "prompts", caps.Prompts != nil
	case methodComplete: // 2024-11-05 has the method and no capability
		return "completions", caps.Completions != nil || !l.revision().atLeast(rev20250326)
	case methodSetLevel:
		return "logging", caps.Logging != nil
	}
	return "", true
}

// ask is Call for methods that a server need not have.
func (cs *ClientSession) ask(ctx context.Context, method string, params, result any) error {
	cs, err := cs.live(ctx)
	if err != nil {
		return fmt.Errorf("mcp: %s: %w", method, err)
	}
	if err := cs.mayCall(method); err != nil {
		return err
	}
	return cs.call(ctx, method, params, result)
}

// mayCall refuses what the server did not declare.
func (cs *ClientSession) mayCall(method string) error {
	if capability, ok := cs.link.offers(method); !ok && !cs.opts.Insist {
		return fmt.Errorf("mcp: %s: the server did not declare %s: %w", method, capability, errors.ErrUnsupported)
	}
	return nil
}

// maxPages is how many pages a list may have.
const maxPages = 10000

// A listing is a list method, and what is done with its pages.
type listing[T, R any] struct {
	method string
	page   func(*R) (entries []T, next *string)
	name   func(*T) string // what an entry is known by
	// got sees every entry; before counts the changes of the list when it was
	// asked for.
	got func(l *link, entry *T, before uint64)
}

// all calls the method for one page after the other. An absent cursor ends
// the list, an empty one does not
// (2026-07-28 server/utilities/pagination). When a modern server no longer
// knows a cursor, the list is read from the beginning once more, without what
// was seen already (2026-07-28 server/utilities/caching § Interaction with
// Pagination).
func (li listing[T, R]) all(ctx context.Context, cs *ClientSession) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		var p ListParams
		cursors, names, again := make(map[string]bool), make(map[string]bool), false
		for range maxPages {
			cs, err := cs.live(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("mcp: %s: %w", li.method, err))
				return
			}
			entries, next, err := li.one(ctx, cs, &p)
			var bad *Error
			if errors.As(err, &bad) && bad.Code == CodeInvalidParams && p.Cursor != nil && !again && cs.link.revision().modern {
				again, p.Cursor = true, nil
				clear(cursors)
				cs.link.cache.drop(nil, li.method)
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range entries {
				name := li.name(&entries[i])
				if again && names[name] {
					continue
				}
				names[name] = true
				if !yield(&entries[i], nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if cursors[*next] {
				yield(nil, fmt.Errorf("mcp: %s: the server repeats the cursor %q", li.method, *next))
				return
			}
			cursors[*next], p.Cursor = true, next
		}
		yield(nil, fmt.Errorf("mcp: %s: more than %d pages", li.method, maxPages))
	}
}

// one asks for one page.
func (li listing[T, R]) one(ctx context.Context, cs *ClientSession, p *ListParams) ([]T, *string, error) {
	before := cs.link.cache.changes(li.method)
	result := new(R)
	if err := cs.ask(ctx, li.method, p, result); err != nil {
		return nil, nil, err
	}
	entries, next := li.page(result)
	for i := range entries {
		li.got(cs.link, &entries[i], before)
	}
	return entries, next, nil
}

// Tools returns the server's tools. After an error there are no more.
func (cs *ClientSession) Tools(ctx context.Context) iter.Seq2[*Tool, error] {
	return listing[Tool, ListToolsResult]{
		methodToolsList,
		func(r *ListToolsResult) ([]Tool, *string) { return r.Tools, r.NextCursor },
		func(t *Tool) string { return t.Name },
		func(l *link, t *Tool, before uint64) {
			t.Icons = usableIcons(t.Icons)
			l.learn(t, before)
		},
	}.all(ctx, cs)
}

// Resources returns the server's resources. After an error there are no more.
func (cs *ClientSession) Resources(ctx context.Context) iter.Seq2[*Resource, error] {
	return listing[Resource, ListResourcesResult]{
		methodResourcesList,
		func(r *ListResourcesResult) ([]Resource, *string) { return r.Resources, r.NextCursor },
		func(r *Resource) string { return r.URI },
		func(_ *link, r *Resource, _ uint64) { r.Icons = usableIcons(r.Icons) },
	}.all(ctx, cs)
}

// ResourceTemplates returns the server's resource templates. After an error
// there are no more.
func (cs *ClientSession) ResourceTemplates(ctx context.Context) iter.Seq2[*ResourceTemplate, error] {
	return listing[ResourceTemplate, ListResourceTemplatesResult]{
		methodTemplatesList,
		func(r *ListResourceTemplatesResult) ([]ResourceTemplate, *string) {
			return r.ResourceTemplates, r.NextCursor
		},
		func(r *ResourceTemplate) string { return r.URITemplate },
		func(_ *link, r *ResourceTemplate, _ uint64) { r.Icons = usableIcons(r.Icons) },
	}.all(ctx, cs)
}

// Prompts returns the server's prompts. After an error there are no more.
func (cs *ClientSession) Prompts(ctx context.Context) iter.Seq2[*Prompt, error] {
	return listing[Prompt, ListPromptsResult]{
		methodPromptsList,
		func(r *ListPromptsResult) ([]Prompt, *string) { return r.Prompts, r.NextCursor },
		func(p *Prompt) string { return p.Name },
		func(_ *link, p *Prompt, _ uint64) { p.Icons = usableIcons(p.Icons) },
	}.all(ctx, cs)
}

// CallTool calls a tool. args encode to a JSON object; nil means no
// arguments. A result with IsError is what the tool reports to the model and
// no error here; the function [CallTool] makes it one. A result with malformed
// content is an error, and so is structured content that does not fit the
// tool's output schema, when the session knows that from [ClientSession.Tools].
func (cs *ClientSession) CallTool(ctx context.Context, name string, args any) (*CallToolResult, error) {
	p := CallToolParams{Name: name}
	if args != nil {
		encoded, err := encodeJSON(nil, args)
		if err != nil {
			return nil, fmt.Errorf("mcp: arguments of %s: %w", name, err)
		}
		if string(encoded) != "null" {
			p.Arguments = encoded
		}
	}
	cs, err := cs.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("mcp: %s: %w", methodToolsCall, err)
	}
	var raw json.RawMessage
	if err := cs.ask(ctx, methodToolsCall, &p, &raw); err != nil {
		return nil, err
	}
	result := new(CallToolResult)
	err = decodeAt(raw, result, cs.link.revision(), false)
	if err == nil {
		err = checkBlocks(rawMember(raw, "content"))
	}
	if err == nil {
		err = cs.link.checkOutput(name, result)
	}
	if err != nil {
		return nil, fmt.Errorf("mcp: %s: invalid result of %s: %w", methodToolsCall, name, err)
	}
	for i := range result.Content {
		result.Content[i].Icons = usableIcons(result.Content[i].Icons)
	}
	return result, nil
}

// checkBlocks refuses content that lacks what its kind must have. Kinds that
// this package does not know are let through
// (2026-07-28 server/tools § Security Considerations).
func checkBlocks(content []byte) error {
	if content == nil || string(content) == "null" {
		return nil
	}
	s := scanner{data: content}
	s.open('[')
	for n := 0; s.more(']', n); n++ {
		if err := checkBlock(s.skip()); err != nil {
			return fmt.Errorf("content[%d]: %w", n, err)
		}
	}
	return nil
}

// needed says which strings a block of content must have, by kind.
var needed = map[string][]string{
	"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"}, "resource_link": {"uri", "name"},
}

func checkBlock(block []byte) error {
	isString := func(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }
	if !hasShape(block, "object") {
		return errors.New("must be an object")
	}
	kind, ok := stringValue(rawMember(block, "type"))
	if !ok {
		return errors.New("type must be a string")
	}
	for _, name := range needed[kind] {
		if !isString(rawMember(block, name)) {
			return fmt.Errorf("%s must be a string", name)
		}
	}
	if kind != "resource" {
		return nil
	}
	resource := rawMember(block, "resource")
	if !hasShape(resource, "object") || !isString(rawMember(resource, "uri")) {
		return errors.New("resource must be an object with a uri")
	}
	if !isString(rawMember(resource, "text")) && !isString(rawMember(resource, "blob")) {
		return errors.New("resource must have text or blob")
	}
	return nil
}

// A ToolError is a result with isError: the tool ran and failed.
type ToolError struct {
	Result *CallToolResult
}

// Error returns the text of the result.
func (e *ToolError) Error() string {
	text := contentText(e.Result.Content)
	if text == "" {
		text = "the tool failed"
	}
	return "mcp: " + text
}

func contentText(content []Content) string {
	var lines []string
	for _, c := range content {
		if c.Type == "text" {
			lines = append(lines, c.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// CallTool calls a tool and returns its result as a Go value. A string is the
// result's text, []Content its content and [*CallToolResult] all of it;
// anything else is decoded from the structured content, or from the text of a
// server that sends only that. A result with IsError is a [*ToolError].
//
// Unlike encoding/json this matches names exactly, so a field Total without a
// json tag does not get the member total. Members that Out does not have are
// ignored, and fields that the result does not have keep their zero value.
func CallTool[Out any](ctx context.Context, cs *ClientSession, name string, args any) (out Out, err error) {
	result, err := cs.CallTool(ctx, name, args)
	if err != nil {
		return out, err
	}
	if result.IsError {
		return out, &ToolError{result}
	}
	switch p := any(&out).(type) {
	case *string:
		*p = contentText(result.Content)
	case *[]Content:
		*p = result.Content
	case **CallToolResult:
		*p = result
	default:
		raw := []byte(result.StructuredContent)
		if raw == nil {
			raw = []byte(contentText(result.Content))
		}
		if err := decodeAny(raw, &out, "structuredContent"); err != nil {
			return out, fmt.Errorf("mcp: result of %s: %w", name, err)
		}
	}
	return out, nil
}

// ReadResource reads a resource.
func (cs *ClientSession) ReadResource(ctx context.Context, uri string) (*ReadResourceResult, error) {
	result := new(ReadResourceResult)
	if err := cs.ask(ctx, methodResourcesRead, &ReadResourceParams{URI: uri}, result); err != nil {
		return nil, err
	}
	return result, nil
}

// GetPrompt gets the messages of a prompt. args may be nil.
func (cs *ClientSession) GetPrompt(ctx context.Context, name string, args map[string]string) (*GetPromptResult, error) {
	result := new(GetPromptResult)
	if err := cs.ask(ctx, methodPromptsGet, &GetPromptParams{Name: name, Arguments: args}, result); err != nil {
		return nil, err
	}
	return result, nil
}

// Complete asks how an argument of a prompt or resource template may go on.
func (cs *ClientSession) Complete(ctx context.Context, p *CompleteParams) (*CompleteResult, error) {
	result := new(CompleteResult)
	if err := cs.ask(ctx, methodComplete, p, result); err != nil {
		return nil, err
	}
	return result, nil
}

// Ping asks whether the server is there. 2026-07-28 has no ping; there
// server/discover is asked.
func (cs *ClientSession) Ping(ctx context.Context) error {
	cs, err := cs.live(ctx)
	if err != nil {
		return err
	}
	if cs.link.revision().modern {
		opts := cs.opts
		opts.Fresh = true
		return cs.With(opts).Call(ctx, methodDiscover, nil, nil)
	}
	return cs.Call(ctx, methodPing, nil, nil)
}

// SetLogLevel asks the server for log messages from level on. A modern server
// is told with every request that follows.
//
// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
// works. Write to stderr, or use OpenTelemetry.
func (cs *ClientSession) SetLogLevel(ctx context.Context, level LoggingLevel) error {
	if level.severity() < 0 {
		return fmt.Errorf("mcp: %q is not a log level", level)
	}
	cs, err := cs.live(ctx)
	if err != nil {
		return err
	}
	if err := cs.mayCall(methodSetLevel); err != nil {
		return err
	}
	if !cs.link.revision().modern {
		if err := cs.call(ctx, methodSetLevel, &SetLevelParams{Level: level}, nil); err != nil {
			return err
		}
	}
	cs.link.mu.Lock()
	defer cs.link.mu.Unlock()
	cs.link.level = level
	return nil
}

// RootsChanged tells the server that the roots are others now, if the client
// declared that it would. A modern server is not told: it asks when it needs
// them.
//
// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
// folders and files as arguments of tools, as URIs of resources, or from the
// server's configuration.
func (cs *ClientSession) RootsChanged(ctx context.Context) error {
	cs, err := cs.live(ctx)
	if err != nil {
		return err
	}
	roots := cs.link.client.caps.Roots
	if cs.link.revision().modern || roots == nil || !roots.ListChanged {
		return nil
	}
	return cs.Notify(ctx, notifyRootsChanged, nil)
}

// A Change is something of a server that is not as it was.
type Change struct {
	// Method is the notification that told so, for example
	// "notifications/tools/list_changed".
	Method string
	// URI is the resource, for "notifications/resources/updated".
	URI string
}

// maxChanges is how many different changes a subscription holds that nobody
// has looked at yet.
const maxChanges = 10000

// A Subscription is told of changes; see [ClientSession.Listen].
type Subscription struct {
	// Honored is the part of what was asked for that the server does, as it
	// said at first.
	Honored SubscriptionFilter

	asked SubscriptionFilter
	acked chan SubscriptionFilter // holds one

	mu      sync.Mutex
	link    *link
	id      ID // of the subscriptions/listen request; zero on a legacy session
	cancel  context.CancelFunc
	gone    chan struct{}      // closed when cancel has had its effect
	watches SubscriptionFilter // what is honored on this connection
	lost    bool               // the connection is, and may be opened again
	live    bool               // acknowledged on this connection
	back    bool               // the next acknowledgement is that of one that was taken out again
	news    bool               // a change came since it was taken out
	pending []Change
	wake    chan struct{} // holds one
	ended   bool
	err     error // why it ended, nil if either side closed it
}

// Listen asks to be told of changes: of the lists and resources that f names.
// A modern server is asked by subscriptions/listen, an older one by
// resources/subscribe, and it tells of changed lists unasked. ctx bounds the
// asking only. End the subscription with its Close. Where the server declared
// nothing of what f asks for, the error wraps [errors.ErrUnsupported], unless
// [CallOptions] insist.
func (cs *ClientSession) Listen(ctx context.Context, f SubscriptionFilter) (*Subscription, error) {
	cs, err := cs.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("mcp: listen: %w", err)
	}
	if honoured := cs.link.about().Capabilities.honours(f); !cs.opts.Insist && !honoured.any() && f.any() {
		return nil, fmt.Errorf("mcp: listen: the server declared nothing of what was asked: %w", errors.ErrUnsupported)
	}
	var sub *Subscription
	err = cs.surely(ctx, methodListen, func() error {
		sub = &Subscription{asked: f, acked: make(chan SubscriptionFilter, 1), wake: make(chan struct{}, 1)}
		err := cs.listen(ctx, sub)
		if err != nil {
			sub.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	sub.Honored = sub.watching()
	return sub, nil
}

// listen takes a subscription out on the connection of cs.
func (cs *ClientSession) listen(ctx context.Context, sub *Subscription) error {
	l, rev := cs.link, cs.link.revision()
	watches := sub.asked
	if !cs.opts.Insist {
		watches = l.about().Capabilities.honours(sub.asked)
	}
	l.mu.Lock()
	if l.subs == nil {
		l.subs = make(map[*Subscription]bool)
	}
	l.subs[sub] = true
	sub.mu.Lock()
	sub.link, sub.lost, sub.cancel, sub.live = l, false, nil, false
	sub.id, sub.watches = ID{}, SubscriptionFilter{}
	select {
	case <-sub.acked: // of another connection
	default:
	}
	if rev.modern {
		sub.number(l)
	} else {
		sub.watches = watches
	}
	sub.mu.Unlock()
	l.mu.Unlock()
	if rev.modern {
		return cs.listenModern(ctx, sub, rev)
	}
	return cs.subscribe(ctx, watches.ResourceSubscriptions)
}

// number gives a subscription the next id of a connection, whose mutex is
// held, and so is the subscription's.
func (sub *Subscription) number(l *link) {
	l.subID++
	sub.id = StringID(fmt.Sprintf("listen-%d", l.subID))
	sub.news = false
}

// again takes a subscription out anew on a connection that was opened again
// (2026-07-28 basic/patterns/subscriptions § Graceful Closure). What changed
// meanwhile nobody has told, so all that is listened to counts as changed.
func (sub *Subscription) again(ctx context.Context, cs *ClientSession) {
	sub.mu.Lock()
	ended := sub.ended
	sub.mu.Unlock()
	if ended {
		return
	}
	if err := cs.listen(ctx, sub); err != nil {
		if cs.life != nil {
			err = cs.life.ended(err)
		}
		sub.over(cs.link, err)
		return
	}
	sub.allChanged(cs.link)
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.signal()
	if sub.ended && sub.cancel != nil { // closed meanwhile
		sub.cancel()
	}
}

// allChanged has all that is listened to count as changed.
func (sub *Subscription) allChanged(l *link) {
	f := sub.watching()
	var changes []Change
	for method, changed := range map[string]bool{
		notifyToolsChanged: f.ToolsListChanged, notifyPromptsChanged: f.PromptsListChanged, notifyResourcesChanged: f.ResourcesListChanged,
	} {
		if changed {
			changes = append(changes, Change{Method: method})
		}
	}
	for _, uri := range f.ResourceSubscriptions {
		changes = append(changes, Change{notifyResourceUpdated, uri})
	}
	for _, c := range changes {
		l.changed(c)
		sub.add(c)
	}
}

// acknowledged takes what the server says it will do for a subscription.
func (sub *Subscription) acknowledged(l *link, f SubscriptionFilter) {
	sub.mu.Lock()
	back := sub.back
	sub.live, sub.back = true, false
	if back {
		sub.watches = f
	}
	sub.mu.Unlock()
	if back {
		sub.allChanged(l)
		return
	}
	select {
	case sub.acked <- f:
	default:
	}
}

func (sub *Subscription) watching() SubscriptionFilter {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.watches
}

// stays reports whether a subscription of a connection does not end by itself
// with it: a modern one does, with its request, unless it was lost before.
func (sub *Subscription) stays(l *link) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.link == l && (sub.id.IsZero() || sub.lost)
}

// over ends a subscription because of what became of a connection, or keeps
// it for the next one. If it has another one already it goes on.
func (sub *Subscription) over(l *link, err error) {
	survives := l.survives(err)
	sub.mu.Lock()
	mine := sub.link == l
	if mine && survives {
		sub.lost = true
		sub.signal()
	}
	sub.mu.Unlock()
	if mine && !survives {
		sub.end(err)
	}
}

func (cs *ClientSession) subscribe(ctx context.Context, uris []string) error {
	for _, uri := range uris {
		if err := cs.call(ctx, methodSubscribe, &SubscribeParams{URI: uri}, nil); err != nil {
			return err
		}
	}
	if cs.link.lost() { // it has ended its subscriptions, and will not end this one
		return doing("listen", ErrClosed)
	}
	return nil
}

// listenModern sends subscriptions/listen and waits for the server to say
// what of it it will do.
func (cs *ClientSession) listenModern(ctx context.Context, sub *Subscription, rev *revision) error {
	params, err := encodeAt(nil, &ListenParams{Notifications: sub.asked}, rev)
	if err != nil {
		return doing(methodListen, err)
	}
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended, gone := make(chan error, 1), make(chan struct{})
	sub.mu.Lock()
	sub.cancel, sub.gone, sub.back = cancel, gone, false
	sub.mu.Unlock()
	go func() {
		defer close(gone)
		err := cs.keepListening(listening, sub, rev, params)
		sub.over(cs.link, err)
		ended <- err
	}()
	if d, _ := cs.opts.limits(&cs.link.client.opts); d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d)
		defer stop()
	}
	select {
	case honored := <-sub.acked:
		sub.mu.Lock()
		sub.watches = honored
		sub.mu.Unlock()
		return nil
	case err := <-ended:
		if err == nil {
			err = fmt.Errorf("mcp: %s: ended before it was acknowledged", methodListen)
		}
		return err
	case <-ctx.Done():
		return doing(methodListen, ctx.Err())
	}
}

// calmListen is how long a subscription must have lasted for its loss to be
// no sign of trouble.
const calmListen = 30 * time.Second

// keepListening holds a modern subscription until it ends. When its stream
// was lost, but not the connection, it is taken out again under another id
// (2026-07-28 basic/patterns/subscriptions § Graceful Closure).
func (cs *ClientSession) keepListening(ctx context.Context, sub *Subscription, rev *revision, params []byte) error {
	l := cs.link
	forever := cs.With(CallOptions{Timeout: -1, MaxTimeout: -1, Meta: cs.opts.Meta})
	for failed := 0; ; failed++ {
		began := time.Now()
		sub.mu.Lock()
		id := sub.id
		sub.mu.Unlock()
		_, err := forever.request(ctx, rev, methodListen, params, id)
		sub.mu.Lock()
		live, news := sub.live, sub.news
		sub.mu.Unlock()
		if !live || ctx.Err() != nil || !l.mayListenAgain(err) {
			return err
		}
		if news || time.Since(began) >= calmListen {
			failed = 0
		}
		wait, more := l.pause(failed)
		if !more {
			return err
		}
		l.client.logger().Info("mcp: a subscription was lost; it is taken out again", "error", err)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-l.core.done.wait():
			t.Stop()
			return ErrClosed
		}
		l.mu.Lock()
		sub.mu.Lock()
		sub.number(l)
		sub.back = true
		sub.mu.Unlock()
		l.mu.Unlock()
	}
}

// mayListenAgain reports whether a subscription that ended by err may work
// when it is taken out again: it was lost without a word of the server's, or
// the server cannot just now.
func (l *link) mayListenAgain(err error) bool {
	var failed *CallError
	var known interface{ temporary() bool }
	return l.pause != nil && errors.As(err, &failed) && (!errors.As(err, &known) || known.temporary())
}

// route hands a notification of a change to the subscriptions that it
// belongs to. It runs where messages are read, so that a change never comes
// after the end.
func (l *link) route(note *Request) {
	id := ID{}
	if raw := rawMember(note.params.meta, metaSubscriptionID); raw != nil {
		id, _ = parseID(raw)
	}
	c := Change{Method: note.Method}
	switch note.Method {
	case notifyAcknowledged, notifyToolsChanged, notifyPromptsChanged, notifyResourcesChanged:
	case notifyResourceUpdated:
		c.URI, _ = stringValue(note.params.uri)
	case notifyCancelled: // the server ends a subscription; it need not send a result, too
		var p CancelledParams
		if decodeAt(note.Params, &p, note.rev, false) != nil || p.RequestID.IsZero() {
			return
		}
		id = p.RequestID
	case notifyElicitationComplete:
		l.pageVisited(note)
		return
	default:
		return
	}
	l.changed(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	for sub := range l.subs {
		sub.mu.Lock()
		its, watches := sub.id, sub.watches
		sub.mu.Unlock()
		switch {
		case its != id:
		case note.Method == notifyCancelled:
			l.core.complete(id, outcome{})
		case note.Method == notifyAcknowledged:
			var p ListenParams
			if decodeAt(note.Params, &p, note.rev, false) == nil {
				sub.acknowledged(l, p.Notifications)
			}
		case !id.IsZero() || watches.wants(c):
			sub.mu.Lock()
			sub.news = true
			sub.mu.Unlock()
			sub.add(c)
		}
	}
}

// any reports whether a filter asks for anything.
func (f *SubscriptionFilter) any() bool {
	return f.ToolsListChanged || f.PromptsListChanged || f.ResourcesListChanged || len(f.ResourceSubscriptions) > 0
}

// wants reports whether a filter asks for a change.
func (f *SubscriptionFilter) wants(c Change) bool {
	switch c.Method {
	case notifyToolsChanged:
		return f.ToolsListChanged
	case notifyPromptsChanged:
		return f.PromptsListChanged
	case notifyResourcesChanged:
		return f.ResourcesListChanged
	}
	return slices.Contains(f.ResourceSubscriptions, c.URI)
}

// add keeps a change until Events comes to it; one that waits already is
// enough.
func (sub *Subscription) add(c Change) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.ended || len(sub.pending) >= maxChanges || slices.Contains(sub.pending, c) {
		return
	}
	sub.pending = append(sub.pending, c)
	sub.signal()
}

func (sub *Subscription) signal() {
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

// end marks the subscription as ended; only the first call counts.
func (sub *Subscription) end(err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if !sub.ended {
		sub.ended, sub.err = true, err
		sub.signal()
	}
}

// Events returns the changes as they come, a change that happened several
// times meanwhile once. It stops when the subscription ends: without an error
// when the server ended it in order or Close was called, with one when the
// connection was lost or ctx ended.
//
// A client with Restart opens a lost connection again here, and goes on. Over
// HTTP a stream that broke is asked for again, and a session that the server
// has lost is opened anew, by any client. What changed meanwhile nobody knows,
// so all that is listened to is then returned as a change.
func (sub *Subscription) Events(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			sub.mu.Lock()
			pending, ended, err := sub.pending, sub.ended, sub.err
			lost, l := sub.lost && !ended, sub.link
			sub.pending = nil
			sub.mu.Unlock()
			for i, c := range pending {
				if !yield(c, nil) {
					sub.putBack(pending[i+1:])
					return
				}
			}
			if ended {
				if err != nil {
					yield(Change{}, err)
				}
				return
			}
			if lost {
				if _, err := l.life.revive(ctx); err != nil && ctx.Err() == nil {
					sub.end(err)
					continue
				}
			}
			select {
			case <-sub.wake:
			case <-ctx.Done():
				yield(Change{}, ctx.Err())
				return
			}
		}
	}
}

// putBack keeps changes that the caller did not come to.
func (sub *Subscription) putBack(changes []Change) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(changes) > 0 {
		sub.pending = append(slices.Clone(changes), sub.pending...)
		sub.signal()
	}
}

// Close ends the subscription. It may be called more than once.
func (sub *Subscription) Close() error {
	sub.end(nil)
	sub.mu.Lock()
	l, cancelled, gone, watches := sub.link, sub.cancel, sub.gone, sub.watches
	sub.mu.Unlock()
	l.mu.Lock()
	known := l.subs[sub]
	delete(l.subs, sub)
	var left []string // what no other subscription watches
	for _, uri := range watches.ResourceSubscriptions {
		watched := false
		for other := range l.subs {
			watched = watched || slices.Contains(other.watching().ResourceSubscriptions, uri)
		}
		if !watched {
			left = append(left, uri)
		}
	}
	l.mu.Unlock()
	if cancelled != nil {
		cancelled()
		t := time.NewTimer(2 * cancelTime)
		defer t.Stop()
		select { // the server is told before anything that is sent after this
		case <-gone:
		case <-t.C:
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	cs := &ClientSession{link: l}
	for _, uri := range left {
		if !known || l.survives(ErrClosed) && l.lost() {
			break
		}
		if err := cs.call(ctx, methodUnsubscribe, &SubscribeParams{URI: uri}, nil); err != nil {
			return err
		}
	}
	return nil
}
