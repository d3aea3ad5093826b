//go:build go1.25

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whole sessions fed with arbitrary lines, on a clock that does not wait. A
// line of one letter stands for a prepared frame, so that the fuzzer finds its
// way into a conversation; every other line goes out as it is.

// A wire is the far end of a fuzzed session.
type wire struct {
	t    *testing.T
	to   *io.PipeWriter
	both *Stream // what the session connects to

	mu    sync.Mutex
	lines []string        // what the session sent
	owed  map[string]int  // answers by id as it is written; "" for none
	taken map[string]bool // by id: whether it is answered may be a matter of time
	react func(line string)

	batched bool // answers may wait for others
}

func newWire(t *testing.T) *wire {
	in, to := io.Pipe()
	from, out := io.Pipe()
	w := &wire{t: t, to: to, both: &Stream{Reader: in, Writer: out}, owed: map[string]int{}, taken: map[string]bool{}}
	go func() {
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			w.mu.Lock()
			w.lines = append(w.lines, strings.TrimSuffix(line, "\n"))
			react := w.react
			w.mu.Unlock()
			if react != nil {
				react(line)
			}
		}
	}()
	return w
}

func (w *wire) send(line string) { io.WriteString(w.to, line+"\n") }

// feed sends the lines of a text, and notes what the session owes for them.
// batches says whether arrays are taken apart now. Without a stop after each
// line they arrive together.
func (w *wire) feed(text []byte, letters string, batches func() bool, stop bool) {
	for n, line := range strings.Split(string(text), "\n") {
		if n == 200 {
			return
		}
		if i := int(line0(line)) - 'a'; len(line) == 1 && i >= 0 && i < strings.Count(letters, "\n") {
			line = strings.Split(letters, "\n")[i]
		}
		var batch []json.RawMessage
		trimmed := strings.TrimPrefix(strings.TrimSuffix(line, "\r"), "\uFEFF")
		switch isBatch := strictEnvelope([]byte(line)).code != CodeParseError && json.Unmarshal([]byte(trimmed), &batch) == nil && strings.TrimSpace(trimmed)[0] == '['; {
		case strings.Trim(line, " \t\r") == "":
		case isBatch && len(batch) > 0 && batches():
			w.batched = true
			for _, member := range batch {
				w.owe([]byte(member), false)
			}
		case isBatch:
			w.owed[""]++
		default:
			w.owe([]byte(strings.TrimSuffix(line, "\r")), stop && !w.batched)
		}
		w.send(line)
		if stop {
			synctest.Wait()
		}
	}
}

func line0(line string) byte {
	if line == "" {
		return 0
	}
	return line[0]
}

// owe notes that a message has to be answered, or that another one is not any
// more. alone means that nothing is on its way, and no answer held back.
func (w *wire) owe(frame []byte, alone bool) {
	e := strictEnvelope(frame)
	switch {
	case e.code == 0 && e.method != "" && e.id != "", e.code != 0 && !e.isResponse:
		w.owed[e.id]++
	case e.code == 0 && e.method == notifyCancelled:
		var p map[string]json.RawMessage
		json.Unmarshal(e.members["params"], &p)
		switch id := string(p["requestId"]); {
		case !alone || p["_meta"] != nil || repeats(e.members["params"]) || !fitsShape(e.members["params"], "requestId id!, reason string"):
			w.taken[id] = true
		case w.owed[id] > w.answers()[id]: // it runs, and is never answered now
			w.owed[id]--
		}
	}
}

// answers counts the answers that came, by their ids.
func (w *wire) answers() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := map[string]int{}
	for _, line := range w.lines {
		frames := []json.RawMessage{json.RawMessage(line)}
		if strings.HasPrefix(line, "[") {
			frames = nil
			if err := json.Unmarshal([]byte(line), &frames); err != nil {
				w.t.Fatalf("%v: %q", err, line)
			}
		}
		for _, frame := range frames {
			if e := w.strict(frame); e.isResponse {
				got[e.id]++
			}
		}
	}
	return got
}

// strict reads a frame that the session sent.
func (w *wire) strict(frame []byte) envelope {
	e := strictEnvelope(frame)
	if e.code != 0 || repeats(json.RawMessage(frame)) || bytes.ContainsAny(frame, "\r\n") {
		w.t.Fatalf("not a message: %q", frame)
	}
	if e.members["error"] != nil && !slices.Contains([]int{
		CodeParseError, CodeInvalidRequest, CodeMethodNotFound, CodeInvalidParams, CodeInternalError,
		CodeMissingClientCapability, CodeUnsupportedProtocolVersion, CodeUserRejected,
	}, e.errorCode) {
		w.t.Fatalf("the protocol has no such code: %q", frame)
	}
	return e
}

// check reads all that the session sent: each line is one message or one
// batch of answers, with codes that the protocol has, and every request has
// its one answer, unless it was cancelled.
func (w *wire) check() {
	synctest.Wait()
	got := w.answers()
	for id, n := range w.owed {
		if got[id] > n || got[id] < n && !w.taken[id] {
			w.t.Fatalf("%d answers to %q, want %d, cancelled %v", got[id], id, n, w.taken[id])
		}
		delete(got, id)
	}
	if len(got) > 0 {
		w.t.Fatalf("answers that nobody asked for: %v", got)
	}
}

// fresh returns an id that stands nowhere in the text.
func fresh(text []byte, what string) string {
	for n := 0; ; n++ {
		if id := fmt.Sprintf(`"%s %d"`, what, n); !bytes.Contains(text, []byte(id)) {
			return id
		}
	}
}

// fuzzServer has one of everything, and nothing that never ends.
func fuzzServer() *Server {
	s := testServer(&ServerOptions{PageSize: 2, Complete: func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) {
		return &CompleteResult{Completion: Completion{Values: []string{"a"}}}, nil
	}})
	s.RemoveTools("wait")
	AddTool(s, Tool{Name: "slow"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return "", req.Progress(ctx, ProgressParams{Progress: 1})
	})
	AddTool(s, Tool{Name: "touch"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		AddTool(s, Tool{Name: "more"}, func(context.Context, *Request, struct{}) (string, error) { return "", nil })
		s.ResourceUpdated("test://a")
		return "", nil
	})
	return s
}

const (
	fuzzMeta    = `"_meta":{"progressToken":0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}`
	fuzzCapable = `{"elicitation":{},"sampling":{},"roots":{}}`
)

// serverLetters are the prepared frames from "a" on.
var serverLetters = strings.Join([]string{
	initializeFrame("0", "2025-11-25", fuzzCapable),
	initializeFrame("0", "2025-03-26", fuzzCapable),
	initializeFrame("0", "2024-11-05", `{}`),
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	request("1", "tools/call", `"name":"slow","arguments":{},"_meta":{"progressToken":"p"}`),
	request("2", "tools/call", `"name":"ask"`),
	request("3", "tools/call", `"name":"touch"`),
	request("4", "resources/subscribe", `"uri":"test://a"`),
	request("5", "tools/list", ``),
	request("6", "logging/setLevel", `"level":"debug"`),
	request("7", "completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""}`),
	request("1", "tools/call", `"name":"slow",`+fuzzMeta),
	request("2", "tools/call", `"name":"ask",`+fuzzMeta),
	request(`"l"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://a"]},`+fuzzMeta),
	request("8", "server/discover", fuzzMeta),
	request("9", "resources/read", `"uri":"test://users/7",`+fuzzMeta),
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///r"}]}}`,
	`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},1,{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"slow"}}]`,
	`{oops`, ``,
}, "\n")

// FuzzServerSession: whatever lines come in, the server does not fall over,
// answers every request once, is there for the next one, and ends in time
// when the input does.
func FuzzServerSession(f *testing.F) {
	f.Add([]byte("a\nd\ne\nf\ng\nh\ni\nj\nk\nt\ns\nu"), false)
	f.Add([]byte("l\nm\nn\no\np\ng\nq\nr\nl"), true)
	f.Add([]byte("b\nv\ne\ne\nq\nw\n[]\n[1]\nnull\n\r\n \xEF\xBB\xBF{}"), false)
	f.Fuzz(func(t *testing.T, text []byte, together bool) {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t)
			ss, err := fuzzServer().Connect(context.Background(), w.both)
			if err != nil {
				t.Fatal(err)
			}
			batches := func() bool {
				ss.core.mu.Lock()
				defer ss.core.mu.Unlock()
				return ss.core.batches
			}
			w.feed(text, serverLetters, batches, !together || bytes.ContainsAny(text, "[v"))
			w.send("")
			for method, id := range map[string]string{methodPing: fresh(text, "ping"), methodDiscover: fresh(text, "discover")} {
				params := ""
				if method == methodDiscover {
					params = fuzzMeta
				}
				w.owed[id]++
				w.send(request(id, method, params))
				synctest.Wait()
				if w.mu.Lock(); !strings.Contains(strings.Join(w.lines, "\n"), `"id":`+id+`,"result"`) {
					t.Fatalf("%s was not answered: %q", method, w.lines)
				}
				w.mu.Unlock()
			}
			start := time.Now()
			w.to.Close()
			if err := ss.Wait(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > drainTime {
				t.Fatalf("the end took %v", took)
			}
			w.check()
		})
	})
}

// clientLetters are what a server may send, from "a" on.
var clientLetters = strings.Join([]string{
	request("1", "ping", ``),
	request("2", "roots/list", ``),
	request("3", "elicitation/create", `"message":"m","requestedSchema":{"type":"object","properties":{}}`),
	request("4", "sampling/createMessage", `"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"maxTokens":1`),
	`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`,
	`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"t"}],"structuredContent":{"sum":1}}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"roots/list"}}}}`,
	`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no","data":[]}}`,
	`{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"c","ttlMs":5,"cacheScope":"private"}}`,
	`{"jsonrpc":"2.0","id":4,"result":{"contents":[{"uri":"u","text":"t"}]}}`,
	`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"result":{}},{}]`,
	`{oops`, ``,
}, "\n")

// settle has the far end of a client's session answer as a server should.
func (w *wire) settle(version string) func(line string) {
	return func(line string) {
		e := strictEnvelope([]byte(strings.TrimSpace(line)))
		result := `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
		switch e.method {
		case methodInitialize:
			result = `{"protocolVersion":"` + version + `","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}`
		case methodDiscover:
			result = `{"resultType":"complete","supportedVersions":["` + version + `"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}`
		}
		if e.method != "" && e.id != "" {
			w.send(`{"jsonrpc":"2.0","id":` + e.id + `,"result":` + result + `}`)
		}
	}
}

// FuzzClientSession: whatever lines its server sends, a client does not fall
// over, every call of its ends, the requests that a server may send are
// answered once, the next call works, and it closes in time.
func FuzzClientSession(f *testing.F) {
	f.Add([]byte("a\nb\nc\nd\ne\nf\ng\nh\ni\nl\nm"), uint8(3))
	f.Add([]byte("e\ng\nj\nk\nl\nn\no"), uint8(4))
	f.Add([]byte("p\n[]\nq\na\na\n1\n\x00"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		rev := revisions[int(which)%len(revisions)]
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t)
			w.react = w.settle(rev.version)
			opts := answering()
			opts.Versions, opts.Timeout = []string{rev.version}, time.Second
			opts.Log = func(context.Context, *LogParams) {}
			ctx := context.Background()
			cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(ctx, w.both)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			w.mu.Lock()
			w.react = nil
			w.mu.Unlock()
			var calls sync.WaitGroup
			for _, call := range []func(cs *ClientSession){
				func(cs *ClientSession) { cs.CallTool(ctx, "add", addIn{1, 2}) },
				func(cs *ClientSession) {
					for range cs.Tools(ctx) {
					}
				},
				func(cs *ClientSession) { cs.ReadResource(ctx, "u") },
			} {
				calls.Go(func() { call(cs.With(CallOptions{Progress: func(ProgressParams) {}})) })
				synctest.Wait() // so that each has the id that it always has
			}
			w.feed(text, clientLetters, func() bool { return rev.batches }, true)
			start := time.Now()
			calls.Wait()
			if took := time.Since(start); took > 11*time.Second {
				t.Fatalf("calls took %v", took)
			}
			w.mu.Lock()
			w.react = w.settle(rev.version)
			w.mu.Unlock()
			if err := cs.Call(ctx, methodToolsList, nil, new(ListToolsResult)); err != nil {
				t.Fatalf("the next call: %v", err)
			}
			start = time.Now()
			cs.Close()
			if took := time.Since(start); took > flushTime {
				t.Fatalf("Close took %v", took)
			}
			if rev.modern { // a client sends no responses then
				clear(w.owed)
			}
			w.check()
		})
	})
}
