//go:build go1.25 && !mcp_nohttp

package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// These tests are about streams and the life of sessions over HTTP, on virtual
// time: connections are pipes, which hold nothing, so that who does not read
// is felt at once.

// A pipeNet is a network of pipes.
type pipeNet struct {
	conns chan net.Conn
	ended chan struct{}
	end   sync.Once
}

func (n *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.ended:
		return nil, net.ErrClosed
	}
}

func (n *pipeNet) Close() error { n.end.Do(func() { close(n.ended) }); return nil }

func (n *pipeNet) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (n *pipeNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case n.conns <- theirs:
		return mine, nil
	case <-n.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// An httpWire is a client on such a network.
type httpWire struct {
	t       *testing.T
	h       *HTTPHandler
	client  *http.Client
	server  *http.Server
	session string
	url     string // "" for the MCP endpoint
	slow    bool   // what is opened is read no faster than the test wants it
}

// onPipes runs f with a client of a handler, on virtual time, and checks that
// nothing is left.
func onPipes(t *testing.T, s *Server, opts *HTTPOptions, f func(t *testing.T, c *httpWire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := NewHTTPHandler(s, opts)
		f(t, serveWire(t, h, h, &http.Server{}))
	})
}

func serveWire(t *testing.T, h *HTTPHandler, handler http.Handler, server *http.Server) *httpWire {
	n := &pipeNet{conns: make(chan net.Conn), ended: make(chan struct{})}
	server.Handler = handler
	go server.Serve(n)
	c := &httpWire{t: t, h: h, server: server, client: &http.Client{Transport: &http.Transport{DialContext: n.dial}}}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		endHTTP(t, h)
		server.Close()
	})
	return c
}

// open sends a request and returns the response when it begins. It ends with
// the test, or by stop.
func (c *httpWire) open(method string, header http.Header, body string) *wireResponse {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Hour)
	url := c.url
	if url == "" {
		url = "http://server/mcp"
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header = head("Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", c.session)
	for name, values := range header {
		r.Header[name] = values
	}
	got, err := c.client.Do(r)
	if err != nil {
		cancel()
		c.t.Fatalf("%s %s: %v", method, body, err)
	}
	w := &wireResponse{Response: got, t: c.t, stop: cancel, lines: make(chan string, 1000)}
	if c.slow {
		w.lines = make(chan string)
	}
	go w.read(ctx)
	c.t.Cleanup(func() { cancel(); got.Body.Close() })
	return w
}

func (c *httpWire) post(body string) *wireResponse { return c.open("POST", nil, body) }

// initialize opens the session that all that follows is of.
func (c *httpWire) initialize(version, capabilities string) {
	c.t.Helper()
	c.session = ""
	w := c.post(initializeFrame("0", version, capabilities))
	fits(c.t, w.all(), `{"id":0,"result":{}}`)
	c.session = w.Header.Get("Mcp-Session-Id")
	c.status(c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), 202)
}

// status checks the status of a response and returns its body.
func (c *httpWire) status(w *wireResponse, status int) string {
	c.t.Helper()
	body := w.all()
	if w.StatusCode != status {
		c.t.Errorf("status %d, not %d: %s", w.StatusCode, status, body)
	}
	return body
}

// A wireResponse is a response that is being read.
type wireResponse struct {
	*http.Response
	t     *testing.T
	stop  context.CancelFunc
	lines chan string
	err   error // why there are no more
}

// read reads on while the test does something else.
func (w *wireResponse) read(ctx context.Context) {
	defer close(w.lines)
	for r := bufio.NewReader(w.Body); ; {
		line, err := r.ReadString('\n')
		if line != "" {
			select {
			case w.lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			w.err = err
			return
		}
	}
}

func (w *wireResponse) all() string {
	w.t.Helper()
	var body strings.Builder
	for line := range w.lines {
		body.WriteString(line)
	}
	w.stop()
	if w.err != io.EOF {
		w.t.Errorf("a response breaks off: %v", w.err)
	}
	return body.String()
}

// event reads an event; io.EOF at the end of the stream.
func (w *wireResponse) event() (sentEvent, error) {
	w.t.Helper()
	var lines []string
	for line := range w.lines {
		if line == "\n" {
			return eventOf(w.t, lines), nil
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if len(lines) > 0 {
		w.t.Fatalf("a stream ends within an event: %q %v", lines, w.err)
	}
	return sentEvent{}, w.err
}

// message reads the next event that has data.
func (w *wireResponse) message(want string) sentEvent {
	w.t.Helper()
	for {
		e, err := w.event()
		if err != nil {
			w.t.Fatalf("a stream ends: %v; no %s", err, want)
		}
		if e.data != "" {
			checkFrame(w.t, e.data)
			fits(w.t, e.data, want)
			return e
		}
	}
}

// ended checks that nothing more comes.
func (w *wireResponse) ended() {
	w.t.Helper()
	for {
		e, err := w.event()
		switch {
		case err == io.EOF:
			return
		case err != nil || e.data != "":
			w.t.Fatalf("%+v %v at the end of a stream", e, err)
		}
	}
}

// A gate is a tool that goes on when it is told to, and notes why it ended.
type gate struct {
	began chan *Request
	on    chan struct{}
	ended chan error // what became of its context
}

func addGate(s *Server) *gate {
	g := &gate{make(chan *Request, 10), make(chan struct{}), make(chan error, 10)}
	rawTool(s, "gate", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		g.began <- req
		select {
		case <-g.on:
			g.ended <- nil
			return textResult("through"), nil
		case <-ctx.Done():
			g.ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	})
	return g
}

func modernCall(id, tool string) string {
	return strings.Replace(modernRequest(id, "tools/call", `"name":"`+tool+`"`, "{}"), `"_meta":{`, `"_meta":{"progressToken":`+id+`,`, 1)
}

// TestHTTPSilence: an answer that takes long becomes a stream with comments,
// which no deadline of the http.Server cuts; with JSON it stays an object.
func TestHTTPSilence(t *testing.T) {
	shows(t, "http.sse.keepalive", "http.sse.accel-buffering", "http.sse.no-early-close", "http.sse.eventual-response", "http.sse.end-after-response", "http.sse.prime", "http.sse.no-resume")
	for _, json := range []bool{false, true} {
		for _, version := range []string{Version20250618, Version20251125, Version20260728} {
			t.Run(fmt.Sprint(json, version), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := emptyServer(nil)
					rawTool(s, "slow", func(context.Context, *Request) (*CallToolResult, error) {
						time.Sleep(70 * time.Second)
						return textResult("done"), nil
					})
					h := NewHTTPHandler(s, &HTTPOptions{JSON: json})
					c := serveWire(t, h, h, &http.Server{ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second, IdleTimeout: time.Hour})
					header, body := http.Header(nil), callFrame("1", "slow")
					if version == Version20260728 {
						header, body = modernHead("tools/call", "slow"), modernCall("1", "slow")
					} else {
						c.initialize(version, "{}")
					}
					w := c.open("POST", header, body)
					if json {
						if fits(t, w.all(), `{"id":1,"result":{"content":[{"text":"done"}]}}`); w.Header.Get("Content-Type") != "application/json" {
							t.Errorf("%v", w.Header)
						}
						return
					}
					if w.Header.Get("Content-Type") != "text/event-stream" || w.Header.Get("X-Accel-Buffering") != "no" || !strings.Contains(w.Header.Get("Cache-Control"), "no-cache") || w.ContentLength != -1 {
						t.Errorf("%v", w.Header)
					}
					comments := 0
					for first := true; ; first = false {
						e, err := w.event()
						if err != nil {
							t.Fatal(err)
						}
						primed := e.hasID && e.id != "" && e.data == "" && e.comment == ""
						if first && primed != (version == Version20251125) {
							t.Errorf("the first event is %+v", e)
						}
						if e.comment != "" {
							comments++
						}
						if version == Version20260728 && e.hasID {
							t.Errorf("an event has an id: %+v", e)
						}
						if e.data != "" {
							fits(t, e.data, `{"id":1,"result":{"content":[{"text":"done"}]}}`)
							break
						}
					}
					if w.ended(); comments != 4 {
						t.Errorf("%d comments in 70 s", comments)
					}
				})
			})
		}
	}
}

// TestHTTPDisconnect: who leaves cancels at 2026-07-28, and does not before.
func TestHTTPDisconnect(t *testing.T) {
	shows(t, "http.cancel.stream-close", "http.cancel.stop", "http.cancel.silent", "http.cancel.disconnect-legacy")
	for _, mode := range []string{"modern", "session", "stateless"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, stream), func(t *testing.T) {
				log := new(logText)
				s := emptyServer(&ServerOptions{Logger: log.logger()})
				g := addGate(s)
				onPipes(t, s, &HTTPOptions{Stateless: mode == "stateless"}, func(t *testing.T, c *httpWire) {
					g.began, g.on, g.ended = make(chan *Request, 1), make(chan struct{}), make(chan error, 1)
					header, body := http.Header(nil), callFrame("1", "gate")
					switch mode {
					case "modern":
						header, body = modernHead("tools/call", "gate"), modernCall("1", "gate")
					case "session":
						c.initialize(Version20251125, "{}")
					}
					ctx, leave := context.WithCancel(t.Context())
					r, _ := http.NewRequestWithContext(ctx, "POST", "http://server/", strings.NewReader(body))
					r.Header = head("Content-Type", "application/json", "Mcp-Session-Id", c.session)
					for k, v := range header {
						r.Header[k] = v
					}
					left := make(chan error, 1)
					go func() {
						w, err := c.client.Do(r)
						if err == nil {
							_, err = io.Copy(io.Discard, w.Body)
						}
						left <- err
					}()
					req := <-g.began
					if stream {
						req.Progress(t.Context(), ProgressParams{Progress: 1})
					}
					leave()
					if err := <-left; !errors.Is(err, context.Canceled) {
						t.Errorf("%v", err)
					}
					synctest.Wait()
					select {
					case cause := <-g.ended:
						if mode != "modern" || !errors.Is(cause, context.Canceled) {
							t.Errorf("the handler ends: %v", cause)
						}
					default:
						if mode == "modern" {
							t.Error("the handler runs on")
						}
						if err := req.Progress(t.Context(), ProgressParams{Progress: 2}); err != nil {
							t.Errorf("Progress: %v", err)
						}
						close(g.on)
						if cause := <-g.ended; cause != nil {
							t.Errorf("the handler ends: %v", cause)
						}
					}
					synctest.Wait()
				})
				if log.count("level=ERROR") > 0 {
					t.Errorf("who hangs up is a failure: %s", &log.text)
				}
			})
		}
	}
}

// TestHTTPCancelled: the POST of a cancelled request is let go.
func TestHTTPCancelled(t *testing.T) {
	s := emptyServer(nil)
	g := addGate(s)
	onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
		g.began, g.on, g.ended = make(chan *Request, 2), make(chan struct{}), make(chan error, 2)
		c.initialize(Version20251125, "{}")
		for _, stream := range []bool{false, true} {
			got := make(chan string)
			go func() { got <- c.post(callFrame("5", "gate")).all() }()
			req := <-g.began
			if stream {
				req.Progress(t.Context(), ProgressParams{Progress: 1})
			}
			c.status(c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`), 202)
			<-g.ended
			body := <-got
			if stream {
				events := eventsOf(t, body)
				body = events[len(events)-1].data
			}
			fits(t, body, `{"id":5,"error":{"code":-32800}}`)
		}
	})
}

// TestHTTPOneStream: every message goes on exactly one stream, the one it
// belongs to.
func TestHTTPOneStream(t *testing.T) {
	shows(t, "http.streams.no-broadcast", "http.get.unrelated", "http.get.no-response", "http.sse.related-legacy", "http.sse.server-messages", "http.get.close-any", "http.resume.id-unique", "http.sse.retry-send")
	s := httpEcho(nil)
	g := addGate(s)
	onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
		g.began, g.on, g.ended = make(chan *Request, 2), make(chan struct{}), make(chan error, 2)
		c.initialize(Version20251125, `{"elicitation":{}}`)
		change := func() { rawTool(s, "another", nil2); time.Sleep(time.Second) }
		change() // nobody listens yet: it waits
		first := c.open("GET", nil, "")
		if first.StatusCode != 200 || first.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("GET: %d %v", first.StatusCode, first.Header)
		}
		ids := map[string]bool{}
		note := func(e sentEvent) {
			t.Helper()
			if ids[e.id] || e.id == "" {
				t.Errorf("the id %q comes twice, or is none", e.id)
			}
			ids[e.id] = true
		}
		const changed = `{"method":"notifications/tools/list_changed"}`
		note(first.message(changed))
		second := c.open("GET", nil, "")
		if e, _ := second.event(); e.data != "" || !e.hasID {
			t.Errorf("the first event is %+v", e)
		}
		change()
		note(second.message(changed)) // the newest only
		asked := c.post(callFrame("1", "ask"))
		e := asked.message(`{"method":"elicitation/create"}`)
		note(e)
		other := c.post(callFrame("2", "progress"))
		note(other.message(`{"method":"notifications/progress","params":{"progressToken":2}}`))
		note(other.message(`{"id":2,"result":{}}`))
		other.ended()
		c.status(c.post(`{"jsonrpc":"2.0","id":`+memberOf(t, e.data, "id")+`,"result":{"action":"decline"}}`), 202)
		note(asked.message(`{"id":1,"result":{"content":[{"text":"decline"}]}}`))
		asked.ended()
		second.stop()
		synctest.Wait()
		change()
		note(first.message(changed))
		// A stream too many ends the oldest, which is told when to come back.
		for range maxGets {
			c.open("GET", nil, "").event()
		}
		if e, _ := first.event(); e.retry != "5000" {
			t.Errorf("the last event is %+v", e)
		}
		first.ended()
		c.status(c.open("DELETE", nil, ""), 204)
	})
}

func nil2(context.Context, *Request) (*CallToolResult, error) { return &CallToolResult{}, nil }

// TestHTTPSlowReader: who does not read is given up, and nobody waits for it;
// what it misses goes on another stream.
func TestHTTPSlowReader(t *testing.T) {
	s := httpEcho(nil)
	g := addGate(s)
	onPipes(t, s, &HTTPOptions{Silence: time.Hour}, func(t *testing.T, c *httpWire) {
		g.began, g.on, g.ended = make(chan *Request, 2), make(chan struct{}), make(chan error, 2)
		c.initialize(Version20250618, `{}`)
		c.slow = true
		c.open("GET", nil, "").event() // reads no more
		c.slow = false
		synctest.Wait()
		for range 3 {
			rawTool(s, "another", nil2)
			time.Sleep(writeTime + 5*time.Second)
		}
		c.open("GET", nil, "").message(`{"method":"notifications/tools/list_changed"}`)
		// A POST's reader that is given up does not cancel at a session, and does at 2026-07-28.
		for i, modern := range []bool{false, true} {
			c.slow = true
			if modern {
				go c.open("POST", modernHead("tools/call", "gate"), modernCall("1", "gate"))
			} else {
				go c.post(callFrame("1", "gate"))
			}
			req := <-g.began
			for n := range 10 {
				req.Progress(t.Context(), ProgressParams{Progress: float64(n + 1), Message: strings.Repeat("x", 8<<10)})
				time.Sleep(writeTime)
			}
			if !modern {
				g.on <- struct{}{}
			}
			if cause := <-g.ended; (cause != nil) != modern {
				t.Errorf("%d: the handler ended: %v", i, cause)
			}
		}
	})
}

// TestHTTPResume: a client that lost a stream goes on with it, and with
// nothing else.
func TestHTTPResume(t *testing.T) {
	shows(t, "http.resume.replay", "http.resume.same-stream", "http.resume.id-stream", "http.sse.server-disconnect")
	s := httpEcho(nil)
	g := addGate(s)
	onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
		g.began, g.on, g.ended = make(chan *Request, 2), make(chan struct{}), make(chan error, 2)
		c.initialize(Version20251125, `{}`)
		through := `{"id":1,"result":{"content":[{"text":"through"}]}}`
		progress := func(n int) string { return fmt.Sprintf(`{"params":{"progress":%d}}`, n) }
		resume := func(last string) *wireResponse { return c.open("GET", head("Last-Event-Id", last), "") }
		var posted *wireResponse
		opened := make(chan struct{})
		go func() { posted = c.post(callFrame("1", "gate")); close(opened) }()
		req := <-g.began
		report := func(n int) {
			t.Helper()
			if err := req.Progress(t.Context(), ProgressParams{Progress: float64(n)}); err != nil {
				t.Errorf("Progress %d: %v", n, err)
			}
		}
		report(1)
		<-opened
		prime, _ := posted.event()
		one := posted.message(progress(1))
		posted.stop()
		synctest.Wait()
		report(2)                                // nobody reads
		c.post(callFrame("9", "progress")).all() // another stream
		s.RemoveTools("echo")                    // and what belongs to no request
		time.Sleep(time.Second)
		listening := c.open("GET", nil, "")
		gets := listening.message(`{"method":"notifications/tools/list_changed"}`)
		again := resume(one.id)
		again.message(progress(2))
		report(3)
		three := again.message(progress(3))
		// While that connection is alive, another one takes its place.
		third := resume(prime.id)
		for n := range 3 {
			third.message(progress(n + 1))
		}
		again.ended()
		report(4)
		third.message(progress(4))
		g.on <- struct{}{}
		third.message(through)
		third.ended()
		synctest.Wait()
		// After its answer.
		late := resume(three.id)
		late.message(progress(4))
		last := late.message(through)
		late.ended()
		resume(last.id).ended()
		// A GET's own stream: what was sent on it, and what waits.
		listening.stop()
		synctest.Wait()
		s.RemoveTools("ask")
		time.Sleep(time.Second)
		back := resume(gets.id)
		next := back.message(`{"method":"notifications/tools/list_changed"}`)
		c.open("GET", nil, "").event()
		back2 := resume(gets.id)
		if e := back2.message(`{"method":"notifications/tools/list_changed"}`); e.id != next.id {
			t.Errorf("%q came again as %q", next.id, e.id)
		}
		back.ended()
		// What is no event of this session.
		mine := c.session
		for _, hostile := range []string{"x", "-", "1", "1-", "g", "g1-0", "1-999", "999-1", one.id + "0", one.id + " x", "-1-1", "../1-1", strings.Repeat("9", 5000), "1-18446744073709551617"} {
			c.status(resume(hostile), 400)
		}
		c.initialize(Version20251125, `{}`)
		c.status(resume(one.id), 400)
		c.session = mine
		c.status(c.open("DELETE", nil, ""), 204)
		c.status(resume(one.id), 404)
	})
}

// TestHTTPCloseStream: the server lets the connection go, and the client polls.
func TestHTTPCloseStream(t *testing.T) {
	shows(t, "http.sse.retry-send", "http.sse.server-disconnect")
	s := emptyServer(nil)
	for _, version := range []string{Version20250618, Version20251125, Version20260728} {
		g := addGate(s)
		onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
			g.began, g.on, g.ended = make(chan *Request, 2), make(chan struct{}), make(chan error, 2)
			header, body := http.Header(nil), callFrame("1", "gate")
			if version == Version20260728 {
				header, body = modernHead("tools/call", "gate"), modernCall("1", "gate")
			} else {
				c.initialize(version, "{}")
			}
			got := make(chan *wireResponse)
			go func() { got <- c.open("POST", header, body) }()
			req := <-g.began
			req.CloseStream(1500 * time.Millisecond)
			req.CloseStream(time.Second) // once
			if version != Version20251125 {
				g.on <- struct{}{}
				fits(t, (<-got).all(), `{"id":1,"result":{}}`)
				return
			}
			w := <-got
			prime, _ := w.event()
			if e, _ := w.event(); e.retry != "1500" || prime.id == "" || prime.data != "" {
				t.Errorf("%+v %+v", prime, e)
			}
			w.ended()
			req.Progress(t.Context(), ProgressParams{Progress: 1})
			w = c.open("GET", head("Last-Event-Id", prime.id), "")
			e := w.message(`{"method":"notifications/progress"}`)
			req.CloseStream(0)
			if e, _ := w.event(); e.retry != "1" {
				t.Errorf("%+v", e)
			}
			w.ended()
			g.on <- struct{}{}
			synctest.Wait()
			w = c.open("GET", head("Last-Event-Id", e.id), "")
			w.message(`{"id":1,"result":{}}`)
			w.ended()
		})
	}
}

// TestHTTPIdle: sessions end when nothing uses them, and never while something
// does.
func TestHTTPIdle(t *testing.T) {
	shows(t, "http.session.gone-404", "http.sse.expiry-close")
	s := emptyServer(nil)
	g := addGate(s)
	onPipes(t, s, &HTTPOptions{IdleTimeout: time.Minute}, func(t *testing.T, c *httpWire) {
		g.began, g.on, g.ended = make(chan *Request, 2), make(chan struct{}), make(chan error, 2)
		ping := func(status int) { t.Helper(); c.status(c.post(request("1", "ping", "")), status) }
		c.initialize(Version20251125, "{}")
		for range 5 {
			time.Sleep(50 * time.Second)
			ping(200)
		}
		stream := c.open("GET", nil, "")
		time.Sleep(10 * time.Minute)
		stream.stop()
		synctest.Wait()
		time.Sleep(50 * time.Second)
		ping(200)
		// A call whose client has gone.
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "POST", "http://server/", strings.NewReader(callFrame("1", "gate")))
		r.Header = head("Content-Type", "application/json", "Mcp-Session-Id", c.session)
		go c.client.Do(r)
		<-g.began
		leave()
		time.Sleep(10 * time.Minute)
		g.on <- struct{}{}
		<-g.ended
		time.Sleep(50 * time.Second)
		ping(200)
		time.Sleep(2 * time.Minute)
		ping(404)
		if c.h.mu.Lock(); c.h.sweeper != nil {
			t.Error("a timer runs without sessions")
		}
		c.h.mu.Unlock()
	})
	onPipes(t, s, &HTTPOptions{IdleTimeout: -1}, func(t *testing.T, c *httpWire) {
		c.initialize(Version20251125, "{}")
		time.Sleep(1000 * time.Hour)
		c.status(c.post(request("1", "ping", "")), 200)
	})
}

// TestHTTPKeepAliveOption: a session over HTTP is not pinged, whose client
// could not hear it.
func TestHTTPKeepAliveOption(t *testing.T) {
	onPipes(t, emptyServer(&ServerOptions{KeepAlive: time.Second}), nil, func(t *testing.T, c *httpWire) {
		c.initialize(Version20251125, "{}")
		time.Sleep(time.Minute)
		c.status(c.post(request("1", "ping", "")), 200)
	})
}

// TestHTTPListens: subscriptions of 2026-07-28, and how Shutdown ends them.
func TestHTTPListens(t *testing.T) {
	shows(t, "http.sse.accel-buffering", "http.sse.keepalive", "http.sse.no-resume", "http.sse.end-after-response")
	for _, json := range []bool{false, true} {
		s := httpEcho(nil)
		onPipes(t, s, &HTTPOptions{JSON: json}, func(t *testing.T, c *httpWire) {
			listen := func(id string) *wireResponse {
				return c.open("POST", modernHead("subscriptions/listen", ""), modernRequest(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`, "{}"))
			}
			streams := map[string]*wireResponse{`7`: listen(`7`), `"a"`: listen(`"a"`)}
			for id, w := range streams {
				w.message(`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
				if w.Header.Get("X-Accel-Buffering") != "no" {
					t.Errorf("%v", w.Header)
				}
			}
			s.RemoveTools("echo")
			for id, w := range streams {
				if e := w.message(`{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`); e.hasID {
					t.Errorf("%+v", e)
				}
			}
			for _, w := range streams {
				if e, _ := w.event(); e.comment == "" {
					t.Errorf("%+v, and no comment", e)
				}
			}
			gone := listen("8")
			gone.event()
			gone.stop()
			synctest.Wait()
			if s.mu.RLock(); len(s.watchers) != 2 {
				t.Errorf("%d watch", len(s.watchers))
			}
			s.mu.RUnlock()
			ended := make(chan error)
			go func() { ended <- c.h.Shutdown(t.Context()) }()
			for id, w := range streams {
				w.message(`{"id":` + id + `,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
				w.ended()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHTTPShutdown: what runs may finish, new requests are refused, and the
// time is bounded whatever handlers do.
func TestHTTPShutdown(t *testing.T) {
	s := emptyServer(nil)
	rawTool(s, "ask", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		time.Sleep(5 * time.Second)
		roots, err := req.Roots(ctx, "k")
		return textResult("%d", len(roots)), err
	})
	rawTool(s, "stuck", func(context.Context, *Request) (*CallToolResult, error) {
		time.Sleep(time.Hour)
		return textResult("at last"), nil
	})
	onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
		c.initialize(Version20251125, `{"roots":{}}`)
		get := c.open("GET", nil, "")
		get.event()
		answer := make(chan *wireResponse)
		go func() { answer <- c.post(callFrame("1", "ask")) }()
		time.Sleep(time.Second)
		ended := make(chan error, 2)
		for range 2 { // two at once
			go func() { ended <- c.h.Shutdown(t.Context()) }()
		}
		synctest.Wait()
		c.status(c.post(request("2", "ping", "")), 503)
		c.status(c.open("GET", nil, ""), 503)
		c.status(c.post(initializeFrame("3", Version20251125, "{}")), 503)
		c.status(c.open("POST", modernHead("server/discover", ""), modernRequest("1", "server/discover", "", "{}")), 503)
		w := <-answer
		id := memberOf(t, w.message(`{"method":"roots/list"}`).data, "id")
		c.status(c.post(`{"jsonrpc":"2.0","id":`+id+`,"result":{"roots":[]}}`), 202)
		w.message(`{"id":1,"result":{"content":[{"text":"0"}]}}`)
		w.ended()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		get.ended()
		c.status(c.post(request("2", "ping", "")), 404)
	})
	for _, modern := range []bool{false, true} {
		onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
			header, body := http.Header(nil), callFrame("1", "stuck")
			if modern {
				header, body = modernHead("tools/call", "stuck"), modernCall("1", "stuck")
			} else {
				c.initialize(Version20251125, "{}")
				// Its POST has gone, and still it runs.
				ctx, leave := context.WithCancel(t.Context())
				r, _ := http.NewRequestWithContext(ctx, "POST", "http://server/", strings.NewReader(callFrame("2", "stuck")))
				r.Header = head("Content-Type", "application/json", "Mcp-Session-Id", c.session)
				go c.client.Do(r)
				synctest.Wait()
				leave()
				synctest.Wait()
			}
			go c.open("POST", header, body)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			if err := c.h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestHTTPElicitationComplete: the notice reaches a session's GET.
func TestHTTPElicitationComplete(t *testing.T) {
	s := emptyServer(nil)
	sessions := make(chan *ServerSession, 1)
	rawTool(s, "page", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		a, err := req.Elicit(ctx, "k", &ElicitParams{Message: "?", URL: "https://example.com/page", ElicitationID: "page 1"})
		if err != nil {
			return nil, err
		}
		sessions <- req.Session()
		return textResult("%s", a.Action), nil
	})
	onPipes(t, s, nil, func(t *testing.T, c *httpWire) {
		sessions = make(chan *ServerSession, 1)
		c.initialize(Version20251125, `{"elicitation":{"url":{}}}`)
		w := c.post(callFrame("1", "page"))
		id := memberOf(t, w.message(`{"method":"elicitation/create"}`).data, "id")
		c.status(c.post(`{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept"}}`), 202)
		w.message(`{"id":1,"result":{}}`)
		ss := <-sessions
		if err := ss.ElicitationComplete(t.Context(), "page 1"); err != nil {
			t.Fatal(err)
		}
		c.open("GET", nil, "").message(`{"method":"notifications/elicitation/complete","params":{"elicitationId":"page 1"}}`)
		if ss.ElicitationComplete(t.Context(), "page 1") == nil {
			t.Error("a page is complete twice")
		}
	})
}

// TestMemoryEvents: the store that is used by default.
func TestHTTPMemoryEvents(t *testing.T) {
	shows(t, "http.resume.id-unique", "http.resume.same-stream")
	m := NewMemoryEvents(10 * (eventCost + 10)).(*memoryEvents)
	ctx := t.Context()
	add := func(session, stream, data string) string {
		t.Helper()
		id, err := m.Append(ctx, session, stream, []byte(data))
		if err != nil || id == "" {
			t.Fatal(id, err)
		}
		return id
	}
	first := add("s", "1", "0123456789")
	seen := map[string]bool{first: true}
	var ids []string
	for i := range 9 {
		id := add("s", fmt.Sprint(1+i%2), "0123456789")
		if seen[id] {
			t.Errorf("the id %q comes twice", id)
		}
		seen[id] = true
		ids = append(ids, id)
	}
	if stream, events, err := m.After(ctx, "s", first); err != nil || stream != "1" || len(events) != 5 || events[0].ID != ids[0] {
		t.Errorf("%s %v %v", stream, events, err)
	}
	for _, id := range []string{"", "x", "1", "3-1", ids[0] + "0"} {
		if _, _, err := m.After(ctx, "s", id); err == nil {
			t.Errorf("an event %q", id)
		}
	}
	if _, _, err := m.After(ctx, "other", first); err == nil {
		t.Error("another session's event")
	}
	if other := add("other", "1", "0123456789"); other != first { // ids are a session's
		t.Logf("%q", other)
	}
	if _, _, err := m.After(ctx, "s", first); err == nil {
		t.Error("the oldest event is still there")
	}
	add("s", "1", strings.Repeat("x", 10*(eventCost+10)))
	if m.size != 0 || len(m.order) != 0 {
		t.Errorf("%d bytes, %d events after one that fills all", m.size, len(m.order))
	}
	if id := add("s", "1", ""); seen[id] {
		t.Errorf("the id %q comes twice", id)
	}
	for i := range 1000 {
		session := fmt.Sprint(i)
		add(session, "1", "")
		if err := m.Drop(ctx, session); err != nil {
			t.Fatal(err)
		}
	}
	m.Drop(ctx, "unknown")
	m.Drop(ctx, "s")
	m.Drop(ctx, "other")
	if m.size != 0 || len(m.order) > 2 || len(m.sessions) != 0 {
		t.Errorf("%d bytes, %d events, %d sessions are left", m.size, len(m.order), len(m.sessions))
	}
}
