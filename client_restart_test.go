//go:build go1.25

package mcp

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A relaunch is a transport that starts a scripted server each time.
type relaunch struct {
	t      *testing.T
	answer react

	mu      sync.Mutex
	fails   int // of the next times
	tries   []time.Time
	servers []*scripted
}

func (l *relaunch) Connect(ctx context.Context) (Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries = append(l.tries, time.Now())
	if l.fails > 0 {
		l.fails--
		return nil, errors.New("cannot start")
	}
	s, tr := script(l.t, l.answer)
	l.servers = append(l.servers, s)
	return tr.Connect(ctx)
}

// last is the server that was started last.
func (l *relaunch) last() *scripted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers[len(l.servers)-1]
}

func (l *relaunch) started() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.servers)
}

// die ends the server and waits until the client has noticed.
func (l *relaunch) die() {
	l.last().conn.Close()
	synctest.Wait()
}

// watched answers what the tests of restarting ask, and acknowledges all that
// is listened to.
func watched(m Message) []string {
	if m.Method == methodListen {
		return []string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + string(rawMember(m.Params, "notifications")) +
			`,"_meta":{"io.modelcontextprotocol/subscriptionId":` + m.ID.String() + `}}}`}
	}
	if !m.IsRequest() || m.Method == "x/silent" {
		return nil
	}
	return []string{resultOf(m, `{"resultType":"complete","content":[]}`)}
}

func launched(t *testing.T, version string, restart bool) (*ClientSession, *relaunch) {
	t.Helper()
	l := &relaunch{t: t, answer: modern(watched)}
	if version != Version20260728 {
		l.answer = legacy(version, watched)
	}
	cs, err := dial(t, ClientOptions{Restart: restart, Versions: []string{version}}, l)
	if err != nil {
		t.Fatal(err)
	}
	return cs, l
}

// A server that died is started again by the next call, which is the only one
// that is sent to it; what was running when it died has failed.
func TestClientRestarts(t *testing.T) {
	shows(t, "stdio.exit.restart", "stdio.exit.inflight", "stateless.client-lifetime")
	eachEra(t, func(t *testing.T, version string) {
		cs, l := launched(t, version, true)
		running := make(chan error, 1)
		go func() { running <- cs.Call(t.Context(), "x/silent", nil, nil) }()
		if err := cs.SetLogLevel(t.Context(), "warning"); err != nil {
			t.Fatal(err)
		}
		if got := l.last().of("x/silent"); len(got) != 1 {
			t.Fatalf("sent %v", got)
		}
		l.die()
		if err := <-running; !errors.Is(err, ErrClosed) || isPeers(err) {
			t.Errorf("the call that ran: %v", err)
		}
		time.Sleep(time.Hour)
		if l.started() != 1 {
			t.Error("started with nothing to do")
		}
		view := cs.With(CallOptions{Timeout: time.Second})
		errs := make(chan error, 10)
		for range cap(errs) { // many at once start one
			go func() { _, err := view.CallTool(t.Context(), "x", nil); errs <- err }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		want := "server/discover"
		if version != Version20260728 {
			want = "initialize notifications/initialized logging/setLevel"
		}
		if got := l.last().methods(); l.started() != 2 || got != want+strings.Repeat(" tools/call", 10) {
			t.Errorf("%d servers, sent %s", l.started(), got)
		}
		if m := l.last().of(methodToolsCall)[0]; version == Version20260728 && string(rawMember(rawMember(m.Params, "_meta"), metaLogLevel)) != `"warning"` {
			t.Errorf("sent %s", m.Params)
		}
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
		if err := cs.Wait(); err != nil {
			t.Error(err)
		}
		if err := cs.Ping(t.Context()); !errors.Is(err, ErrClosed) || l.started() != 2 {
			t.Errorf("after Close: %v, %d servers", err, l.started())
		}
	})
}

// Without the option a lost connection stays lost.
func TestClientDoesNotRestart(t *testing.T) {
	shows(t, "subs.close.abrupt")
	eachEra(t, func(t *testing.T, version string) {
		cs, l := launched(t, version, false)
		sub, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		l.die()
		for _, err := range sub.Events(t.Context()) {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("event, %v", err)
			}
		}
		if err := cs.Ping(t.Context()); !errors.Is(err, ErrClosed) || l.started() != 1 {
			t.Errorf("%v, %d servers", err, l.started())
		}
		if err := cs.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// Subscriptions go on: whoever waits for their events opens the connection
// again, and all that they are about counts as changed.
func TestClientListensAgain(t *testing.T) {
	shows(t, "subs.stdio.relisten", "subs.stdio.correlate")
	eachEra(t, func(t *testing.T, version string) {
		cs, l := launched(t, version, true)
		ctx := t.Context()
		tools, err := cs.Listen(ctx, SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		one, err := cs.Listen(ctx, SubscriptionFilter{ResourceSubscriptions: []string{"x:a"}, PromptsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		gone, err := cs.Listen(ctx, SubscriptionFilter{ResourcesListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		events := func(sub *Subscription) chan string {
			seen := make(chan string, 10)
			go func() {
				defer close(seen)
				for c, err := range sub.Events(ctx) {
					if err != nil {
						seen <- err.Error()
						return
					}
					seen <- c.Method + " " + c.URI
				}
			}()
			return seen
		}
		all := func(c chan string) string {
			synctest.Wait()
			var got []string
			for len(c) > 0 {
				got = append(got, <-c)
			}
			return strings.Join(got, ", ")
		}
		ofTools, ofOne := events(tools), events(one)
		for range 3 { // more than once
			l.die()
			time.Sleep(time.Minute)
			if got := all(ofTools); got != notifyToolsChanged+" " {
				t.Errorf("of tools: %s", got)
			}
			if got := all(ofOne); got != notifyPromptsChanged+" , "+notifyResourceUpdated+" x:a" {
				t.Errorf("of one: %s", got)
			}
		}
		s := l.last()
		want := "initialize notifications/initialized resources/subscribe"
		if version == Version20260728 {
			want = "server/discover subscriptions/listen subscriptions/listen"
		}
		if got := s.methods(); got != want || l.started() != 4 {
			t.Errorf("%d servers, sent %s", l.started(), got)
		}
		note := func(method, uri, filter string) string { // as the server tells it now
			meta := ""
			for _, m := range s.of(methodListen) {
				if strings.Contains(string(m.Params), filter) {
					meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":` + m.ID.String() + `},`
				}
			}
			return `{"jsonrpc":"2.0","method":"` + method + `","params":{` + meta + `"uri":"` + uri + `"}}`
		}
		s.send(note(notifyResourceUpdated, "x:a", "x:a"), note(notifyToolsChanged, "", "toolsListChanged"))
		if got := all(ofOne); got != notifyResourceUpdated+" x:a" {
			t.Errorf("of one: %s", got)
		}
		if got := all(ofTools); got != notifyToolsChanged+" " {
			t.Errorf("of tools: %s", got)
		}
		one.Close()
		if _, more := <-ofOne; more {
			t.Error("an event after Close")
		}
		l.die()
		cs.Close()
		for range ofTools { // it may have found the connection gone, or Close
		}
	})
}

// A server that does not come up is tried a few times, with pauses that grow,
// and again by the next call.
func TestClientRestartBounded(t *testing.T) {
	shows(t, "stdio.exit.restart", "caching.poll-jitter")
	eachEra(t, func(t *testing.T, version string) {
		cs, l := launched(t, version, true)
		sub, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		l.fails = maxRestarts + 1
		l.die()
		if err := cs.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot start") || isPeers(err) {
			t.Errorf("error %v", err)
		}
		if len(l.tries) != 1+maxRestarts {
			t.Errorf("%d tries", len(l.tries))
		}
		for i := 3; i < len(l.tries); i++ {
			if l.tries[i].Sub(l.tries[i-1]) < 2*l.tries[i-1].Sub(l.tries[i-2]) {
				t.Errorf("tries at %v", l.tries)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := cs.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller without patience: %v", err)
		}
		if err := cs.Ping(t.Context()); err != nil {
			t.Errorf("in the end: %v", err)
		}
		got := ""
		for c, err := range sub.Events(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			got += c.Method
			break
		}
		if got != notifyToolsChanged {
			t.Errorf("the subscription told %q", got)
		}
		for range 20 { // dies all the time
			l.die()
			if err := cs.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := len(l.tries); l.tries[n-1].Sub(l.tries[n-2]) != restartMax {
			t.Errorf("pause of %v", l.tries[n-1].Sub(l.tries[n-2]))
		}
		l.fails = 1000
		l.die()
		failed := 0
		for _, err := range sub.Events(t.Context()) {
			if err == nil {
				continue // what it counted as changed
			}
			if failed++; !strings.Contains(err.Error(), "cannot start") {
				t.Errorf("error %v", err)
			}
		}
		if failed != 1 {
			t.Errorf("%d errors", failed)
		}
	})
}

// Close while the connection is being opened again ends everything.
func TestClientRestartClosed(t *testing.T) {
	shows(t, "stdio.exit.restart")
	eachEra(t, func(t *testing.T, version string) {
		cs, l := launched(t, version, true)
		sub, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		l.fails = 1000
		l.die()
		done := make(chan error, 2)
		go func() { done <- cs.Ping(t.Context()) }()
		go func() {
			for _, err := range sub.Events(t.Context()) {
				done <- err
			}
		}()
		time.Sleep(50 * time.Millisecond)
		cs.Close()
		for range cap(done) {
			if err := <-done; !errors.Is(err, ErrClosed) {
				t.Errorf("error %v", err)
			}
		}
	})
	bubble(t, func(t *testing.T) { // an end of InMemory cannot be connected to twice
		s, tr := script(t, modern(watched))
		cs, err := dial(t, ClientOptions{Restart: true}, tr)
		if err != nil {
			t.Fatal(err)
		}
		s.conn.Close()
		synctest.Wait()
		if err := cs.Ping(t.Context()); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("error %v", err)
		}
	})
}
