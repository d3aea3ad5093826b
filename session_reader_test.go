package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// A pipedServer is a server on a pair of pipes, and its raw client.
type pipedServer struct {
	t      *testing.T
	to     *io.PipeWriter
	from   *bufio.Reader
	ss     *ServerSession
	writes atomic.Int64 // of the server
}

type countedWriter struct {
	io.Writer
	n *atomic.Int64
}

func (c countedWriter) Write(b []byte) (int, error) { c.n.Add(1); return c.Writer.Write(b) }

// newPipedServer serves tools that return at once, that wait until their context
// ends or news come, and that end their goroutine; whichever the argument says.
func newPipedServer(t *testing.T, release <-chan struct{}) *pipedServer {
	leakCheck(t)
	s := NewServer(Implementation{Name: "s", Version: "1"}, nil)
	type in struct {
		Do string `json:"do"`
	}
	AddTool(s, Tool{Name: "t"}, func(ctx context.Context, _ *Request, in in) (string, error) {
		switch in.Do {
		case "wait":
			select {
			case <-release:
			case <-ctx.Done():
			}
		case "exit":
			runtime.Goexit()
		case "panic":
			panic("on purpose")
		}
		return in.Do, nil
	})
	serverIn, to := io.Pipe()
	from, out := io.Pipe()
	p := &pipedServer{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	ss, err := s.Connect(context.Background(), &Stream{Reader: serverIn, Writer: countedWriter{out, &p.writes}})
	if err != nil {
		t.Fatal(err)
	}
	p.ss = ss
	t.Cleanup(func() {
		go io.Copy(io.Discard, from)
		ss.Close()
		to.Close()
		out.Close()
	})
	p.send(initializeFrame("0", Version20251125, "{}"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.answer("0")
	return p
}

func toolCall(id int, do string) string {
	return request(fmt.Sprint(id), methodToolsCall, fmt.Sprintf(`"name":"t","arguments":{"do":%q}`, do))
}

// send writes all frames at once.
func (p *pipedServer) send(frames ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.to, strings.Join(frames, "\n")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// answer reads one answer and checks whose it is.
func (p *pipedServer) answer(id string) string {
	p.t.Helper()
	line, err := p.from.ReadString('\n')
	if err != nil || !strings.Contains(line, `"id":`+id+",") {
		p.t.Fatalf("instead of the answer to %s: %s %v", id, line, err)
	}
	return line
}

// warm calls the tool until the reader serves it itself.
func (p *pipedServer) warm() {
	p.t.Helper()
	r := p.ss.core.reader
	for i := 1000; i < 20000; i++ {
		p.send(toolCall(i, "now"))
		p.answer(fmt.Sprint(i))
		r.mu.Lock()
		quick := len(r.quick) > 0
		r.mu.Unlock()
		if quick {
			return
		}
	}
	p.t.Fatal("no call was quick")
}

func TestNothingWaitsBehindAHandlerThatUsedToBeQuick(t *testing.T) {
	release := make(chan struct{})
	p := newPipedServer(t, release)
	for range 3 {
		p.warm()
		// The answer to 1, which was held, does not wait for 2 either.
		p.send(toolCall(1, "now"), toolCall(2, "wait"), request("3", methodPing, ""), toolCall(4, "wait"), toolCall(5, "now"))
		got := map[string]bool{}
		for range 3 {
			line, err := p.from.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"1", "3", "5"} {
				got[id] = got[id] || strings.Contains(line, `"id":`+id+",")
			}
		}
		if len(got) != 3 || !got["1"] || !got["3"] || !got["5"] {
			t.Fatalf("answered meanwhile: %v", got)
		}
		release <- struct{}{}
		release <- struct{}{}
		for range 2 {
			if line, err := p.from.ReadString('\n'); err != nil || !strings.Contains(line, `"wait"`) {
				t.Fatal(line, err)
			}
		}
	}
}

func TestReaderOutlivesHandlersThatEndBadly(t *testing.T) {
	p := newPipedServer(t, nil)
	for _, do := range []string{"exit", "panic", "exit", "exit"} {
		p.warm()
		p.send(toolCall(1, do), toolCall(2, "now"), toolCall(3, do), toolCall(4, "now"))
		got := map[int]string{}
		for range 4 {
			line, err := p.from.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			for id := range 5 {
				if strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) {
					got[id] = line
				}
			}
		}
		for id := 1; id <= 4; id++ {
			if failed := strings.Contains(got[id], "internal error"); got[id] == "" || failed != (id%2 == 1) {
				t.Errorf("%s: the answer to %d: %s", do, id, got[id])
			}
		}
	}
}

func TestAnswersLeaveTogether(t *testing.T) {
	p := newPipedServer(t, nil)
	const n = 100
	var frames []string
	for i := range n {
		frames = append(frames, toolCall(i, "now"))
	}
	for try := 0; ; try++ {
		p.warm()
		p.writes.Store(0)
		p.send(frames...)
		for range n {
			if _, err := p.from.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if p.writes.Load() <= n/4 { // one, unless the machine was busy
			return
		}
		if try == 100 {
			t.Fatalf("%d answers in %d writes", n, p.writes.Load())
		}
	}
}

// A cancelled context is done with a cause, whether it was asked before or not.
func TestHandlerContextOnDemand(t *testing.T) {
	for _, early := range []bool{false, true} {
		ctx, stop := context.WithCancelCause(context.WithValue(context.Background(), "k", "v"))
		req := &Request{session: &session{ctx: ctx}, values: context.WithValue(context.Background(), "k2", "v2")}
		rctx := context.Context((*requestContext)(req))
		if rctx.Err() != nil || rctx.Value("k") != "v" || rctx.Value("k2") != "v2" {
			t.Error("a new context:", rctx.Err(), rctx.Value("k"), rctx.Value("k2"))
		}
		var derived context.Context
		if early {
			var cancel context.CancelFunc
			derived, cancel = context.WithCancel(rctx)
			defer cancel()
		}
		req.endContext(&cancelledByPeer{"enough"})
		if derived == nil {
			var cancel context.CancelFunc
			derived, cancel = context.WithCancel(rctx)
			defer cancel()
		}
		for _, c := range []context.Context{rctx, derived} {
			<-c.Done()
			if c.Err() != context.Canceled || !strings.Contains(context.Cause(c).Error(), "enough") || c.Value("k2") != "v2" {
				t.Error(c.Err(), context.Cause(c), c.Value("k2"))
			}
		}
		req = &Request{session: &session{ctx: ctx}}
		rctx = (*requestContext)(req)
		req.endContext(nil) // the request is over
		if rctx.Err() != context.Canceled {
			t.Error("over:", rctx.Err())
		}
		<-rctx.Done()
		req = &Request{session: &session{ctx: ctx}}
		rctx = (*requestContext)(req)
		stop(ErrClosed)
		if rctx.Err() != context.Canceled || context.Cause(rctx) != ErrClosed {
			t.Error("with the session:", rctx.Err(), context.Cause(rctx))
		}
		<-rctx.Done()
	}
}
