//go:build !mcp_nohttp

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A load is how much TestLoadHTTP puts on a server; with MCP_LOAD=full in the
// environment it is what the handler must bear.
type load struct {
	sessions, streams, callers int
	time                       time.Duration
}

func loadSize() load {
	if os.Getenv("MCP_LOAD") == "full" {
		return load{2000, 500, 64, 30 * time.Second}
	}
	return load{1000, 100, 16, 2 * time.Second}
}

// crowd is the clients of a load.
type crowd struct {
	t        *testing.T
	url      string
	client   *http.Client
	sessions []string
	number   atomic.Int64 // of the last question
	counts   sync.Map     // of *atomic.Int64: what was done, by name
}

func (c *crowd) count(what string) {
	n, _ := c.counts.LoadOrStore(what, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// loadServer doubles numbers: at once, after notices, or after a while.
func loadServer() *Server {
	s := NewServer(Implementation{Name: "load", Version: "1"}, nil)
	type question struct {
		N     int64 `json:"n"`
		Notes int   `json:"notes,omitempty"`
		Sleep int   `json:"sleep,omitempty"`
	}
	type answer struct {
		Double int64 `json:"double"`
	}
	AddTool(s, Tool{Name: "double"}, func(ctx context.Context, req *Request, in question) (answer, error) {
		for i := range in.Notes {
			req.Progress(ctx, ProgressParams{Progress: float64(i + 1)})
		}
		select {
		case <-time.After(time.Duration(in.Sleep) * time.Millisecond):
		case <-ctx.Done():
		}
		return answer{2 * in.N}, nil
	})
	s.AddResource(Resource{URI: "test://news", Name: "news"}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil })
	return s
}

// post sends a body to the server.
func (c *crowd) post(ctx context.Context, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.client.Do(r)
}

// open opens a session and returns its id.
func (c *crowd) open() string {
	ctx := context.Background()
	r, err := c.post(ctx, initializeFrame("0", Version20251125, "{}"))
	if err != nil {
		c.t.Errorf("initialize: %v", err)
		return ""
	}
	readOut(r)
	id := r.Header.Get(headerSession)
	initialized := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	if r, err = c.post(ctx, initialized, headerSession, id); errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		// This request has no deadline. net/http put its connection back before
		// it told of the 202, and the next request on it ended early.
		c.count("error of another request")
		r, err = c.post(ctx, initialized, headerSession, id)
	}
	if err != nil {
		c.t.Errorf("initialized: %v", err)
		return id
	}
	readOut(r)
	if r.StatusCode != http.StatusAccepted || id == "" {
		c.t.Errorf("initialized: %d in session %q", r.StatusCode, id)
	}
	return id
}

// ask asks for the double of a number that nobody else asks for and checks
// the answer. In a session of its id, or without one at 2026-07-28.
func (c *crowd) ask(ctx context.Context, session string, sleep int) error {
	n := c.number.Add(1)
	id := fmt.Sprintf(`"q%d"`, n)
	params := fmt.Sprintf(`"name":"double","arguments":{"n":%d,"notes":%d,"sleep":%d}`, n, rand.IntN(3), sleep)
	meta := fmt.Sprintf(`"progressToken":%d`, n)
	body := request(id, methodToolsCall, params+`,"_meta":{`+meta+`}`)
	header := []string{headerSession, session, headerVersion, Version20251125}
	if session == "" {
		body = strings.Replace(modernRequest(id, methodToolsCall, params, "{}"), `"_meta":{`, `"_meta":{`+meta+",", 1)
		header = []string{headerVersion, Version20260728, headerMethod, methodToolsCall, headerName, "double"}
	}
	r, err := c.post(ctx, body, header...)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	answer, err := lastMessage(r)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`"structuredContent":{"double":%d}`, 2*n); !bytes.Contains(answer, []byte(`"id":`+id)) || !bytes.Contains(answer, []byte(want)) {
		return fmt.Errorf("question %d in session %q was answered with %d %s", n, session, r.StatusCode, answer)
	}
	return nil
}

// lastMessage returns the JSON of a response, or of its last event.
func lastMessage(r *http.Response) (last []byte, err error) {
	if mediaType(r) != "text/event-stream" {
		return io.ReadAll(r.Body)
	}
	for events := newEventReader(r.Body, 1<<20); ; {
		e, err := events.next()
		if err == io.EOF {
			return last, nil
		} else if err != nil {
			return nil, err
		}
		if e.isMessage() {
			last = []byte(e.data)
		}
	}
}

// listen opens a stream of 2026-07-28 and counts the news on it; ended is
// called when it is over.
func (c *crowd) listen(ctx context.Context, acked func(), news *atomic.Int64, ended func()) {
	defer ended()
	id := fmt.Sprint(c.number.Add(1))
	r, err := c.post(ctx, modernRequest(id, methodListen, `"notifications":{"resourceSubscriptions":["test://news"]}`, "{}"),
		headerVersion, Version20260728, headerMethod, methodListen)
	if err != nil {
		c.t.Errorf("listen: %v", err)
		acked()
		return
	}
	defer r.Body.Close()
	events := newEventReader(r.Body, 1<<20)
	for {
		e, err := events.next()
		if err != nil {
			return
		}
		switch {
		case strings.Contains(e.data, notifyAcknowledged):
			acked()
		case strings.Contains(e.data, notifyResourceUpdated) && strings.Contains(e.data, `"`+metaSubscriptionID+`":`+id):
			news.Add(1)
		case e.isMessage() && !strings.Contains(e.data, `"result"`):
			c.t.Errorf("stream %s got %s", id, e.data)
		}
	}
}

// behave lets one client do what comes to its mind, in a session of its own,
// in those of others, and without.
func (c *crowd) behave(ctx context.Context, until time.Time) {
	own := c.open()
	for time.Now().Before(until) {
		what, err := "call", error(nil)
		switch rand.IntN(10) {
		case 0, 1, 2:
			err = c.ask(ctx, "", rand.IntN(2))
		case 3, 4:
			err = c.ask(ctx, own, rand.IntN(2))
		case 5:
			err = c.ask(ctx, c.sessions[rand.IntN(len(c.sessions))], 0)
		case 6:
			what = "disconnect"
			short, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(5000))*time.Microsecond)
			c.ask(short, []string{"", own}[rand.IntN(2)], 20)
			cancel()
		case 7:
			what, err = "kill", c.kill()
		case 8:
			what, err = "malformed", c.malformed(ctx, own)
		case 9:
			what = "session"
			c.end(own)
			own = c.open()
		}
		if c.count(what); err != nil {
			c.t.Errorf("%s: %v", what, err)
		}
	}
	c.end(own)
}

// end ends a session.
func (c *crowd) end(session string) {
	r, _ := http.NewRequest(http.MethodDelete, c.url, nil)
	r.Header.Set(headerSession, session)
	if r, err := c.client.Do(r); err != nil || r.StatusCode != http.StatusNoContent {
		c.t.Errorf("DELETE: %v %+v", err, r)
	} else {
		readOut(r)
	}
}

// kill sends a part of a request, or all of it, and resets the connection.
func (c *crowd) kill() error {
	host := strings.TrimPrefix(c.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := modernRequest("1", methodToolsCall, `"name":"double","arguments":{"n":1,"sleep":5}`, "{}")
	all := fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s: %s\r\n%s: %s\r\n%s: double\r\nContent-Length: %d\r\n\r\n%s",
		host, headerVersion, Version20260728, headerMethod, methodToolsCall, headerName, len(body), body)
	if _, err := io.WriteString(conn, all[:rand.IntN(len(all)+1)]); err != nil {
		return err
	}
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
	return conn.(*net.TCPConn).SetLinger(0)
}

// malformed sends what must be refused.
func (c *crowd) malformed(ctx context.Context, session string) error {
	good := request("1", methodToolsCall, `"name":"double","arguments":{"n":1}`)
	bad := []string{"", "{", good[:rand.IntN(len(good))], "\xff", strings.Repeat("[", 1<<16), `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "[]"}
	r, err := c.post(ctx, bad[rand.IntN(len(bad))], headerSession, session)
	if err != nil {
		return err
	}
	defer readOut(r)
	if r.StatusCode != http.StatusBadRequest {
		return fmt.Errorf("status %d", r.StatusCode)
	}
	return nil
}

// inTurns runs f for every number below n, some at a time.
func inTurns(n int, f func(i int)) {
	var wg sync.WaitGroup
	turns := make(chan bool, 32)
	for i := range n {
		turns <- true
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(i)
			<-turns
		}()
	}
	wg.Wait()
}

func TestLoadHTTP(t *testing.T) {
	leakCheck(t)
	size := loadSize()
	s := loadServer()
	h := NewHTTPHandler(s, nil)
	server := httptest.NewServer(h)
	defer server.Close()
	pool := &http.Transport{MaxIdleConnsPerHost: 128}
	c := &crowd{t: t, url: server.URL, client: &http.Client{Transport: pool}, sessions: make([]string, size.sessions)}
	inTurns(100, func(int) { c.open() }) // what net/http makes once
	pool.CloseIdleConnections()

	goroutines, before := settled(), heap()
	inTurns(size.sessions, func(i int) { c.sessions[i] = c.open() })
	pool.CloseIdleConnections()
	if n := more(goroutines); n > 0 {
		t.Errorf("%d goroutines for %d idle sessions", n, size.sessions)
	}
	bytesEach := (heap() - before) / int64(size.sessions)
	if t.Logf("an idle session takes %d bytes", bytesEach); bytesEach > 2<<10 && !raceEnabled {
		t.Error("which is too much")
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	news := make([]atomic.Int64, size.streams)
	var acked, listening, calling sync.WaitGroup
	acked.Add(size.streams)
	listening.Add(size.streams)
	for i := range size.streams {
		go c.listen(ctx, sync.OnceFunc(acked.Done), &news[i], listening.Done)
	}
	acked.Wait()
	until := time.Now().Add(size.time)
	for range size.callers {
		calling.Add(1)
		go func() {
			defer calling.Done()
			c.behave(ctx, until)
		}()
	}
	calling.Wait()
	c.counts.Range(func(what, n any) bool {
		t.Logf("%s: %d", what, n.(*atomic.Int64).Load())
		return true
	})

	inTurns(size.sessions, func(i int) { // all are still there, and each is its own
		if err := c.ask(ctx, c.sessions[i], 0); err != nil {
			t.Errorf("after the load: %v", err)
		}
	})
	s.ResourceUpdated("test://news")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && countNews(news) < size.streams; {
		time.Sleep(time.Millisecond)
	}
	if n := countNews(news); n != size.streams {
		t.Errorf("%d of %d streams heard the news", n, size.streams)
	}
	if err := h.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	listening.Wait() // each ended with its result
	pool.CloseIdleConnections()
	leftNothing(t, s, h)
}

func countNews(news []atomic.Int64) (n int) {
	for i := range news {
		if news[i].Load() == 1 {
			n++
		}
	}
	return n
}

// leftNothing checks that a handler that has been shut down has let go of
// all.
func leftNothing(t *testing.T, s *Server, h *HTTPHandler) {
	t.Helper()
	h.mu.Lock()
	sessions, live := len(h.sessions)+h.opening, len(h.live)
	h.mu.Unlock()
	s.mu.Lock()
	watchers := len(s.watchers)
	s.mu.Unlock()
	events := h.opts.Events.(*memoryEvents)
	events.mu.Lock()
	kept := len(events.sessions) + events.size
	events.mu.Unlock()
	if sessions+live+watchers+kept > 0 {
		t.Errorf("left: %d sessions, %d requests, %d watchers, %d of events", sessions, live, watchers, kept)
	}
}

// readOut reads a response to its end, so that its connection can be used
// again.
func readOut(r *http.Response) {
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
}
