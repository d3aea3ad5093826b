//go:build go1.25 && !mcp_nohttp

package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// onSSE is onPipes for a client of HTTP+SSE: everything but the MCP endpoint,
// which is at /mcp of the same server, is this transport's.
func onSSE(t *testing.T, s *Server, opts *HTTPOptions, f func(t *testing.T, c *httpWire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := NewHTTPHandler(s, opts)
		mux := http.NewServeMux()
		mux.Handle("/mcp", h)
		mux.Handle("/sse", h.SSE())
		f(t, serveWire(t, h, mux, &http.Server{ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second}))
	})
}

// connect opens a session of HTTP+SSE: its stream, and how to post to it.
func (c *httpWire) connect() (stream *wireResponse, post func(status int, body string)) {
	c.t.Helper()
	c.url = "http://server/sse"
	stream = c.open("GET", head("Accept", "text/event-stream"), "")
	e, err := stream.event()
	if err != nil || stream.StatusCode != 200 || stream.Header.Get("Content-Type") != "text/event-stream" || stream.Header["Mcp-Session-Id"] != nil {
		c.t.Fatalf("%d %v %v", stream.StatusCode, stream.Header, err)
	}
	endpoint, err := stream.Request.URL.Parse(e.data)
	if e.name != "endpoint" || err != nil || endpoint.Path != "/sse" || endpoint.Host != "server" || len(endpoint.RawQuery) < 32 {
		c.t.Fatalf("the first event is %+v", e)
	}
	return stream, func(status int, body string) {
		c.t.Helper()
		c.url = endpoint.String()
		if got := c.status(c.post(body), status); status == 202 && got != "" {
			c.t.Errorf("what is accepted is answered with %s", got)
		}
	}
}

// message reads the next event, of the name that this transport gives it.
func sseMessage(t *testing.T, w *wireResponse, want string) sentEvent {
	t.Helper()
	e := w.message(want)
	if e.name != "message" || e.hasID {
		t.Errorf("%+v", e)
	}
	return e
}

// TestSSESession is a session of 2024-11-05, beside one of another revision.
func TestSSESession(t *testing.T) {
	shows(t, "sse.endpoints", "sse.endpoint-event", "sse.message-event", "http.compat.sse-server")
	s := httpEcho(nil)
	rawTool(s, "slow", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		time.Sleep(time.Minute)
		return textResult("%v %s", req.Header["X-Mine"], req.Principal), nil
	})
	onSSE(t, s, &HTTPOptions{IdleTimeout: time.Minute, Principal: func(*http.Request) string { return "ann" }}, func(t *testing.T, c *httpWire) {
		stream, post := c.connect()
		post(202, request("1", "tools/list", ""))
		sseMessage(t, stream, `{"id":1,"error":{"code":-32602}}`)
		post(202, initializeFrame("2", Version20241105, `{"elicitation":{},"roots":{}}`))
		sseMessage(t, stream, `{"id":2,"result":{"protocolVersion":"2024-11-05"}}`)
		post(202, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		post(202, callFrame("3", "progress"))
		sseMessage(t, stream, `{"method":"notifications/progress","params":{"progressToken":3}}`)
		sseMessage(t, stream, `{"id":3,"result":{}}`)
		post(202, callFrame("4", "slow"))
		post(202, request("5", "ping", "")) // overtakes it
		sseMessage(t, stream, `{"id":5,"result":{}}`)
		sseMessage(t, stream, `{"id":4,"result":{"content":[{"text":"[] ann"}]}}`)
		s.RemoveTools("echo")
		sseMessage(t, stream, `{"method":"notifications/tools/list_changed"}`)
		post(202, callFrame("6", "slow"))
		post(202, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`)
		time.Sleep(time.Hour) // an open stream is a session in use, and answers nothing that was cancelled
		post(202, request("7", "ping", ""))
		sseMessage(t, stream, `{"id":7,"result":{}}`)
		post(400, `{`)
		post(400, `{"jsonrpc":"2.0","id":9}`)
		post(202, `[`+request("8", "ping", "")+`]`)
		sseMessage(t, stream, `{"error":{"code":-32600}}`)
		c.url = ""
		c.initialize(Version20251125, "{}") // the other transport, at its own address
		c.status(c.post(request("1", "ping", "")), 200)
		c.session = ""
		stream.stop()
		synctest.Wait()
		post(404, request("10", "ping", ""))
	})
	// A server of now only has no such transport.
	if w := do(NewHTTPHandler(httpEcho(&ServerOptions{Versions: []string{Version20260728}}), nil).SSE(), "GET", nil, ""); w.Code != 404 {
		t.Errorf("a server of 2026-07-28 only: %d", w.Code)
	}
}

// TestSSEBatch: the members of a batch are answered together, and known as
// their sender's.
func TestSSEBatch(t *testing.T) {
	shows(t, "batch.receive")
	s := emptyServer(nil)
	rawTool(s, "who", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s", req.Principal), nil
	})
	onSSE(t, s, &HTTPOptions{Principal: func(*http.Request) string { return "ann" }}, func(t *testing.T, c *httpWire) {
		stream, post := c.connect()
		post(202, initializeFrame("1", Version20250326, `{}`))
		sseMessage(t, stream, `{"id":1,"result":{}}`)
		post(202, `[`+callFrame("2", "who")+`,{"jsonrpc":"2.0","method":"notifications/initialized"}]`)
		e, _ := stream.event()
		fits(t, e.data, `[{"id":2,"result":{"content":[{"text":"ann"}]}}]`)
	})
}

// TestSSERefuses: the same care as at the MCP endpoint; TestHTTPGuard checks
// origins and hosts of both.
func TestSSERefuses(t *testing.T) {
	shows(t, "sse.origin")
	user := ""
	opts := &HTTPOptions{MaxBody: 1000, MaxSessions: 2, Principal: func(r *http.Request) string { return user }}
	onSSE(t, httpEcho(nil), opts, func(t *testing.T, c *httpWire) {
		user = "ann"
		_, post := c.connect()
		good := c.url
		c.connect()
		w := c.open("GET", nil, "") // too many
		if c.status(w, 503); w.Header.Get("Retry-After") == "" {
			t.Errorf("%v", w.Header)
		}
		post(413, request("1", "ping", `"x":"`+strings.Repeat("x", 1000)+`"`))
		post(202, request("1", "ping", ""))
		good = c.url
		c.status(c.open("POST", head("Content-Type", "text/plain"), request("1", "ping", "")), 415)
		c.status(c.open("POST", http.Header{"Origin": {"http://evil.example"}}, request("1", "ping", "")), 403)
		user = "eve"
		post(404, request("1", "ping", ""))
		user = "ann"
		for _, wrong := range []string{"http://server/sse", "http://server/sse?sessionId=", "http://server/sse?sessionId=" + strings.Repeat("0", 32)} {
			c.url = wrong
			c.status(c.post(request("1", "ping", "")), 404)
		}
		_, id, _ := strings.Cut(good, "sessionId=")
		c.url = "http://server/mcp" // the session is none of the other transport
		for _, method := range []string{"POST", "GET", "DELETE"} {
			c.status(c.open(method, head("Mcp-Session-Id", id), request("1", "ping", "")), 404)
		}
		c.url = "http://server/sse"
		c.status(c.open("GET", head("Accept", "application/json"), ""), 406)
		w = c.open("PUT", nil, "")
		if c.status(w, 405); w.Header.Get("Allow") != "GET, POST" {
			t.Errorf("%v", w.Header)
		}
	})
}

// TestSSEShutdown: what runs may finish, and the stream ends then.
func TestSSEShutdown(t *testing.T) {
	s := emptyServer(nil)
	rawTool(s, "slow", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		time.Sleep(time.Minute)
		return textResult("done"), nil
	})
	for _, batch := range []bool{false, true} {
		onSSE(t, s, nil, func(t *testing.T, c *httpWire) {
			stream, post := c.connect()
			post(202, initializeFrame("1", Version20250326, `{}`))
			sseMessage(t, stream, `{"id":1,"result":{}}`)
			frame, want := callFrame("2", "slow"), `{"id":2,"result":{"content":[{"text":"done"}]}}`
			if batch {
				frame, want = `[`+frame+`]`, `[`+want+`]`
			}
			post(202, frame)
			ended := make(chan error, 1)
			go func() { ended <- c.h.Shutdown(t.Context()) }()
			synctest.Wait()
			post(503, request("3", "ping", ""))
			for {
				e, err := stream.event()
				if err != nil {
					t.Fatal(err)
				}
				if e.data != "" {
					fits(t, e.data, want)
					break
				}
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			stream.ended()
			c.url = "http://server/sse"
			c.status(c.open("GET", nil, ""), 503)
		})
		onSSE(t, s, nil, func(t *testing.T, c *httpWire) { // who does not wait
			stream, post := c.connect()
			post(202, initializeFrame("1", Version20250326, `{}`))
			post(202, callFrame("2", "slow"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := c.h.Shutdown(ctx); err != context.DeadlineExceeded {
				t.Error(err)
			}
			sseMessage(t, stream, `{"id":1,"result":{}}`)
			stream.ended()
			time.Sleep(time.Minute)
		})
	}
}

// TestSSESlowReader: the session of a client that does not read ends.
func TestSSESlowReader(t *testing.T) {
	s := httpEcho(nil)
	onSSE(t, s, &HTTPOptions{Silence: time.Hour}, func(t *testing.T, c *httpWire) {
		c.slow = true
		_, post := c.connect()
		c.slow = false
		post(202, initializeFrame("1", Version20250326, `{}`))
		post(202, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for range 3 {
			post(202, request("2", "ping", ""))
			time.Sleep(writeTime + time.Second)
			synctest.Wait()
			if c.h.mu.Lock(); len(c.h.sessions) == 0 {
				c.h.mu.Unlock()
				return
			}
			c.h.mu.Unlock()
		}
		t.Error("the session goes on")
	})
}

// TestSSEAuthorization: whoever stands in front of a handler covers all that
// it serves.
func TestSSEAuthorization(t *testing.T) {
	shows(t, "sse.authn", "http.authn")
	h := NewHTTPHandler(httpEcho(nil), nil)
	for _, inner := range []http.Handler{h, h.SSE()} {
		reached := false
		guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.WriteHeader(401)
				return
			}
			reached = true
			inner.ServeHTTP(w, r)
		})
		for _, method := range []string{"GET", "POST", "DELETE", "PUT"} {
			for _, token := range []string{"", "Bearer x"} {
				r := httptest.NewRequest(method, "/", io.LimitReader(strings.NewReader("x"), 1))
				reached = false
				w := doRequest(guarded, r, head("Authorization", token, "Accept", "x/y"))
				if (w.Code == 401) != (token == "") || reached != (token != "") {
					t.Errorf("%s with %q: %d", method, token, w.Code)
				}
			}
		}
	}
}
