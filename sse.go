//go:build !mcp_nohttp

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// This file is HTTP+SSE, the transport of 2024-11-05, which later revisions
// have deprecated: a client holds one stream of events open and posts its
// messages to the address that the stream's first event names.

// SSE returns a handler for clients of HTTP+SSE, to be registered beside h,
// for example at "/sse". A session is one GET; it ends with its connection.
// The options, limits and sessions are those of h, and so is Shutdown.
func (h *HTTPHandler) SSE() http.Handler { return http.HandlerFunc(h.serveSSE) }

func (h *HTTPHandler) serveSSE(w http.ResponseWriter, r *http.Request) {
	if !h.guard(w, r) {
		return
	}
	s := h.serverFor(w, r)
	switch {
	case s == nil:
	case s.legacy() == nil:
		refuseHTTP(w, http.StatusNotFound, ID{}, Errorf(CodeInvalidRequest, "the server serves no revision of this transport"))
	case r.Method == http.MethodGet:
		h.getSSE(w, r, s)
	case r.Method == http.MethodPost:
		h.postSSE(w, r, s)
	default:
		methodNotAllowed(w, "GET, POST")
	}
}

// sessionParam is the query parameter that says which session a message is
// for.
const sessionParam = "sessionId"

// getSSE opens a session and holds its stream open.
func (h *HTTPHandler) getSSE(w http.ResponseWriter, r *http.Request, s *Server) {
	if !parseAccept(r.Header["Accept"]).stream {
		refuseHTTP(w, http.StatusNotAcceptable, ID{}, Errorf(CodeInvalidRequest, "the client must accept text/event-stream"))
		return
	}
	hs := &httpSession{h: h, id: newSessionID(), principal: h.principal(r), old: true, open: 1}
	if !h.reserve(hs) {
		h.tooMany(w, ID{})
		return
	}
	defer h.settle(hs, false)
	p := &posted{h: h, w: w, r: r, server: s}
	ss := p.enter(r.Context())
	if ss == nil {
		return
	}
	h.leave(ss) // an open stream is nothing that Shutdown waits for
	g := &getStream{conn: h.openStream(w, r)}
	hs.ss, ss.core.out = ss, sseStream{g, ss.core}
	defer func() {
		g.end(0)
		h.mu.Lock()
		delete(h.sessions, hs.id)
		h.mu.Unlock()
		hs.end()
	}()
	if _, bad := h.settle(hs, true); bad != nil {
		refuseHTTP(w, http.StatusServiceUnavailable, ID{}, bad)
		return
	}
	// A reference that is nothing but a query leads back to this path.
	if g.event("endpoint", []byte("?"+sessionParam+"="+hs.id)) {
		hs.hold(r.Context(), g)
	}
}

// postSSE takes a message for a session; what answers it goes to the stream.
func (h *HTTPHandler) postSSE(w http.ResponseWriter, r *http.Request, s *Server) {
	p := &posted{h: h, w: w, r: r, server: s, principal: h.principal(r)}
	hs := h.lookUp(r.URL.Query().Get(sessionParam), s, p.principal, true)
	if hs == nil {
		refuseHTTP(w, http.StatusNotFound, ID{}, Errorf(CodeInvalidRequest, "no such session"))
		return
	}
	defer hs.leave()
	if p.body = h.readBody(w, r); p.body == nil {
		return
	}
	core := hs.ss.core
	members, isBatch := splitBatch(p.body)
	var m Message
	var isResponse bool
	if !isBatch {
		var bad *Error
		if m, isResponse, bad = decodeMessage(p.body); bad != nil {
			p.refuse(http.StatusBadRequest, bad)
			return
		}
	}
	out := core.out
	if isBatch || m.IsRequest() {
		if !h.enter(hs.ss) {
			p.refuse(http.StatusServiceUnavailable, errShuttingDown)
			return
		}
		out = sseAnswer{out, func() { h.leave(hs.ss) }}
	}
	writeAccepted(w)
	http.NewResponseController(w).Flush()
	if isBatch {
		core.deliverBatch(members, out, p.dress)
	} else if req := core.route(m, isResponse, nil, out, p.dress); req != nil {
		if hs.ss.inline(req) {
			core.serve(req)
		} else {
			go core.serve(req)
		}
	}
}

// sseStream is the way out of a session.
type sseStream struct {
	g    *getStream
	core *session
}

func (s sseStream) room(context.Context) error { return nil }

func (s sseStream) put(frame []byte) error {
	if s.core.ctx.Err() != nil || !s.g.event("message", frame) {
		s.g.end(0) // the session ends with its stream
		return ErrClosed
	}
	return nil
}

func (s sseStream) answer(frame []byte, _ int) {
	if frame != nil {
		s.put(frame)
	}
}

// sseAnswer is the way out of what one POST asked for.
type sseAnswer struct {
	stream
	answered func()
}

func (s sseAnswer) answer(frame []byte, code int) {
	s.stream.answer(frame, code)
	s.answered()
}

func init() { openSSE = dialSSE }

// endpointTime is how long a server may take to say where to post.
const endpointTime = 10 * time.Second

// dialSSE opens the stream of a server of HTTP+SSE. It returns how to post
// messages to it.
func dialSSE(ctx context.Context, c *httpConn) (post func(ctx context.Context, frame []byte) error, err error) {
	stream, cancel := context.WithCancel(c.ctx)
	d := &sseDial{c: c, named: make(chan struct{}), ended: make(chan struct{})}
	c.run(func() {
		defer cancel()
		d.read(stream)
	})
	t := time.NewTimer(endpointTime)
	defer t.Stop()
	select {
	case <-d.named:
		c.log.Info("mcp: the server speaks HTTP+SSE")
		return d.post, nil
	case <-d.ended:
		return nil, d.err
	case <-t.C:
		err = errors.New("the server does not say where to post")
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	return nil, err
}

// An sseDial is the client's end of HTTP+SSE.
type sseDial struct {
	c        *httpConn
	endpoint *url.URL
	err      error
	named    chan struct{} // closed when endpoint is set
	ended    chan struct{} // closed when the stream ended before that, and err is set
}

// read reads the stream: first the address to post to, then messages. With it
// the connection ends.
func (d *sseDial) read(ctx context.Context) {
	_, err := d.c.events(ctx, httpClientSession{}, "", func(events *eventReader) error {
		for {
			e, err := events.next()
			switch {
			case err != nil:
				return err
			case d.endpoint != nil && e.isMessage():
				d.c.push([]byte(e.data), nil)
			case d.endpoint == nil && e.name == "endpoint":
				if err := d.name(e.data); err != nil {
					return err
				}
			}
		}
	})
	switch {
	case d.endpoint == nil:
		d.err = noEOF(err)
		close(d.ended)
	case err == io.EOF:
		d.c.push(nil, io.EOF)
	default:
		d.c.push(nil, fmt.Errorf("mcp: the connection was lost: %w", err))
	}
}

// name takes the address to post to, which must be of the server itself.
func (d *sseDial) name(address string) error {
	u, err := d.c.url.Parse(address)
	if err != nil || u.Scheme != d.c.url.Scheme || u.Host != d.c.url.Host {
		return errors.New("the server names an endpoint of another origin")
	}
	u.User = d.c.url.User
	d.endpoint = u
	close(d.named)
	return nil
}

// post posts a message to the address that the server named.
func (d *sseDial) post(ctx context.Context, frame []byte) error {
	r, err := d.c.do(ctx, http.MethodPost, d.endpoint, http.Header{"Content-Type": jsonType}, frame)
	if err != nil {
		return err
	}
	if r.StatusCode < 200 || r.StatusCode > 299 {
		id := httpClientSession{id: d.endpoint.Query().Get(sessionParam)}
		return d.c.httpError(http.MethodPost, id, r)
	}
	finish(r)
	return nil
}
