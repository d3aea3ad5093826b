package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// What things may cost. Times are benchmarks; memory, allocations and
// goroutines have ceilings here, beside those of TestTypedCallCeiling and of
// the rooms' own tests.

// overBytes serves s over two pipes and returns what exchanges one line for
// another.
func overBytes(t *testing.T, s *Server) (exchange func(line string) []byte) {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ss, err := s.Connect(context.Background(), &Stream{Reader: serverIn, Writer: serverOut})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Close() })
	answers := bufio.NewReaderSize(clientIn, 1<<18)
	var out []byte
	return func(line string) []byte {
		out = append(append(out[:0], line...), '\n')
		clientOut.Write(out)
		answer, err := answers.ReadSlice('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// cost is what one call of f allocates, on average.
func cost(f func()) (allocs, size float64) {
	const runs = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	allocs = testing.AllocsPerRun(runs, f)
	runtime.ReadMemStats(&after)
	return allocs, float64(after.TotalAlloc-before.TotalAlloc) / (runs + 1)
}

// TestListCeiling: a list of 100 tools is encoded once and copied from then
// on, in either era.
func TestListCeiling(t *testing.T) {
	s := NewServer(Implementation{Name: "s", Version: "1"}, nil)
	for i := range 100 {
		AddTool(s, Tool{Name: fmt.Sprintf("tool-%d", i), Description: strings.Repeat("what it does ", 10)}, func(_ context.Context, _ *Request, in addIn) (addOut, error) {
			return addOut{in.A + in.B}, nil
		})
	}
	for _, c := range []struct{ name, list string }{
		{"legacy", request("1", methodToolsList, "")},
		{"modern", modernRequest("1", methodToolsList, "", "{}")},
	} {
		t.Run(c.name, func(t *testing.T) {
			exchange := overBytes(t, s)
			exchange(initializeFrame("0", Version20251125, "{}"))
			answer := len(exchange(c.list))
			if answer < 20<<10 {
				t.Fatalf("the answer has %d bytes", answer)
			}
			allocs, size := cost(func() { exchange(c.list) })
			t.Logf("%.0f allocations, %.0f bytes for an answer of %d", allocs, size, answer)
			pages := (answer>>13 + 1) << 13 // the runtime makes large pieces of whole pages
			if !raceEnabled && (allocs > 20 || size > float64(pages+2<<10)) {
				t.Errorf("%.0f allocations and %.0f bytes for an answer of %d bytes", allocs, size, answer)
			}
		})
	}
}

// settled waits until the number of goroutines does not change any more, and
// returns it.
func settled() int {
	last, same := runtime.NumGoroutine(), 0
	for end := time.Now().Add(5 * time.Second); same < 20 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if n := runtime.NumGoroutine(); n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
	return last
}

// more returns how many goroutines there are beyond so many, and gives them
// time to end.
func more(than int) int {
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > than && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return runtime.NumGoroutine() - than
}

// heap is what lives after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalized
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestIdleSessionCeiling: a session with nothing to do is its memory and the
// goroutine that reads.
func TestIdleSessionCeiling(t *testing.T) {
	const sessions, most = 1000, 10 << 10
	s := testServer(nil)
	for _, c := range []struct {
		name  string
		frame string
	}{
		{"legacy", initializeFrame("0", Version20251125, "{}")},
		{"modern", modernRequest("0", methodDiscover, "", "{}")},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			goroutines, before := settled(), heap()
			conns := make([]Conn, sessions)
			for i := range conns {
				client, server := InMemory()
				if _, err := s.Connect(ctx, server); err != nil {
					t.Fatal(err)
				}
				conns[i], _ = client.Connect(ctx)
				conns[i].Write(ctx, []byte(c.frame))
				if frame, err := conns[i].Read(ctx); err != nil || !bytes.Contains(frame, []byte(`"result"`)) {
					t.Fatalf("%s, %v", frame, err)
				}
			}
			if n := more(goroutines + sessions); n > 0 {
				t.Errorf("%d goroutines too many for %d idle sessions", n, sessions)
			}
			each := (heap() - before) / sessions
			t.Logf("%d bytes of heap for each session", each)
			if each > most && !raceEnabled {
				t.Errorf("an idle session takes %d bytes, at most %d", each, most)
			}
			for _, conn := range conns {
				conn.Close()
			}
			if n := more(goroutines); n > 0 {
				t.Errorf("%d goroutines are left of %d sessions", n, sessions)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.watchers) > 0 {
				t.Errorf("the server still watches for %d sessions", len(s.watchers))
			}
		})
	}
}

// TestWatchingCeiling: who watches a thousand resources costs no goroutine
// for any of them.
func TestWatchingCeiling(t *testing.T) {
	const resources = 1000
	uris := make([]string, resources)
	for i := range uris {
		uris[i] = fmt.Sprintf("test://users/%d", i)
	}
	list, err := json.Marshal(uris)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("legacy", func(t *testing.T) {
		c, _ := dialServer(t, testServer(nil))
		c.initialize(Version20251125, "{}")
		before := settled()
		for i, uri := range uris {
			fits(t, c.call(request(fmt.Sprint(i+1), methodSubscribe, `"uri":"`+uri+`"`)), `{"result":{}}`)
		}
		if n := more(before); n > 0 {
			t.Errorf("%d goroutines for %d resources", n, resources)
		}
	})
	t.Run("modern", func(t *testing.T) {
		c, _ := dialServer(t, testServer(nil))
		c.call(modernRequest("0", methodDiscover, "", "{}"))
		before := settled()
		fits(t, c.call(modernRequest("1", methodListen, `"notifications":{"resourceSubscriptions":`+string(list)+`}`, "{}")), `{"method":"notifications/subscriptions/acknowledged"}`)
		if n := more(before + 1); n > 0 {
			t.Errorf("%d goroutines too many for one request that listens", n)
		}
	})
}

// TestTimedOutCallsLeaveNothing gives up a thousand calls: neither side has
// anything left of them, and the next call works.
func TestTimedOutCallsLeaveNothing(t *testing.T) {
	const calls = 1000
	everyEra(t, func(t *testing.T, version string) {
		client, server := InMemory()
		ss, err := testServer(nil).Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer ss.Close()
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: []string{version}}).Connect(context.Background(), client)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		before := settled()
		var wg sync.WaitGroup
		for range calls {
			wg.Add(1)
			go func() {
				defer wg.Done()
				_, err := cs.With(CallOptions{Timeout: time.Millisecond}).CallTool(context.Background(), "wait", nil)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		if _, err := cs.CallTool(context.Background(), "add", addIn{1, 2}); err != nil {
			t.Errorf("the next call: %v", err)
		}
		if n := more(before); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
		for _, core := range []*session{cs.link.core, ss.core} {
			core.mu.Lock()
			if len(core.calls)+len(core.running)+core.busy+len(core.notes) > 0 {
				t.Errorf("left: %d calls, %d requests, %d busy, %d notifications", len(core.calls), len(core.running), core.busy, len(core.notes))
			}
			core.mu.Unlock()
		}
	})
}

func everyEra(t *testing.T, f func(t *testing.T, version string)) {
	t.Run("legacy", func(t *testing.T) { f(t, Version20251125) })
	t.Run("modern", func(t *testing.T) { f(t, Version20260728) })
}
