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
		h.postSSE(w, r)
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
	ss, err := h.newSession(r.Context(), s)
	if err != nil {
		refuseHTTP(w, http.StatusInternalServerError, ID{}, errNoLifespan)
		return
	}
	if !h.reserve() {
		w.Header().Set("Retry-After", "60")
		refuseHTTP(w, http.StatusServiceUnavailable, ID{}, Errorf(CodeInternalError, "there are too many sessions"))
		return
	}
	hs := &httpSession{h: h, id: newSessionID(), principal: h.principal(r), ss: ss, old: true, open: 1}
	g := &getStream{conn: h.openStream(w, r), done: make(chan struct{})}
	hs.gets = []*getStream{g}
	hs.ss.core.out = sseStream{hs, g}
	if !h.open(hs, true) {
		refuseHTTP(w, http.StatusServiceUnavailable, ID{}, errShuttingDown)
		return
	}
	defer func() {
		h.mu.Lock()
		delete(h.sessions, hs.id)
		h.mu.Unlock()
		hs.end()
	}()
	// A reference that is nothing but a query leads back to this path.
	if g.event("endpoint", "", []byte("?"+sessionParam+"="+hs.id)) {
		hs.hold(r.Context(), g)
	}
}

// postSSE takes a message for a session; what answers it goes to the stream.
func (h *HTTPHandler) postSSE(w http.ResponseWriter, r *http.Request) {
	hs := h.lookUp(r.URL.Query().Get(sessionParam), h.principal(r), true)
	if hs == nil {
		refuseHTTP(w, http.StatusNotFound, ID{}, Errorf(CodeInvalidRequest, "no such session"))
		return
	}
	defer hs.leave()
	body := h.readBody(w, r)
	if body == nil {
		return
	}
	w.WriteHeader(http.StatusAccepted)
	http.NewResponseController(w).Flush()
	core := hs.ss.core
	if req := core.deliver(body, core.out); req != nil {
		req.Header, req.Principal, req.values = r.Header, hs.principal, context.WithoutCancel(r.Context())
		if hs.ss.inline(req) {
			core.serve(req)
		} else {
			go core.serve(req)
		}
	}
}

// sseStream is the way out of a session.
type sseStream struct {
	hs *httpSession
	g  *getStream
}

func (s sseStream) room(context.Context) error { return nil }

func (s sseStream) put(frame []byte) error {
	if !s.g.event("message", "", frame) {
		s.g.end() // the session ends with its stream
		return ErrClosed
	}
	return nil
}

func (s sseStream) answer(frame []byte, _ int) {
	if frame != nil {
		s.put(frame)
	}
}

func init() { openSSE = dialSSE }

// endpointTime is how long a server may take to say where to post.
const endpointTime = 10 * time.Second

// dialSSE opens the stream of a server of HTTP+SSE. It returns how to send
// messages to it, nil if it is none.
func dialSSE(ctx context.Context, c *httpConn) func(ctx context.Context, frame []byte) error {
	type opened struct {
		endpoint *url.URL
		err      error
	}
	first := make(chan opened, 1)
	stream, cancel := context.WithCancel(c.ctx)
	go func() {
		defer cancel()
		endpoint := (*url.URL)(nil)
		_, err := c.events(stream, "", func(events *eventReader) error {
			for {
				e, err := events.next()
				switch {
				case err != nil:
					return err
				case endpoint != nil && e.isMessage():
					c.push([]byte(e.data), nil)
				case endpoint == nil && e.name == "endpoint":
					if endpoint, err = c.url.Parse(e.data); err != nil || endpoint.Scheme != c.url.Scheme || endpoint.Host != c.url.Host {
						return errors.New("mcp: the server names an endpoint of another origin")
					}
					first <- opened{endpoint: endpoint}
				}
			}
		})
		if endpoint == nil {
			first <- opened{err: err}
		} else if err == io.EOF {
			c.push(nil, io.EOF)
		} else {
			c.push(nil, fmt.Errorf("mcp: the connection was lost: %w", err))
		}
	}()
	t := time.NewTimer(endpointTime)
	defer t.Stop()
	select {
	case o := <-first:
		if o.err != nil {
			return nil
		}
		c.log.Info("mcp: the server speaks HTTP+SSE")
		return func(ctx context.Context, frame []byte) error { return c.postTo(ctx, o.endpoint, frame) }
	case <-t.C:
	case <-ctx.Done():
	}
	cancel()
	return nil
}

// postTo posts a message to the address that the server named.
func (c *httpConn) postTo(ctx context.Context, endpoint *url.URL, frame []byte) error {
	r, err := c.doAt(ctx, http.MethodPost, endpoint, http.Header{"Content-Type": jsonType}, frame)
	if err != nil {
		return err
	}
	defer drain(r)
	if r.StatusCode < 200 || r.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		return &HTTPError{Method: http.MethodPost, Status: r.StatusCode, Type: mediaType(r), Body: string(body)}
	}
	return nil
}
