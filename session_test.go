package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

type addIn struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

type addOut struct {
	Sum int64 `json:"sum"`
}

// testServer has one of everything.
func testServer(opts *ServerOptions) *Server {
	s := NewServer(Implementation{Name: "test", Version: "1"}, opts)
	AddTool(s, Tool{Name: "add"}, func(_ context.Context, _ *Request, in addIn) (addOut, error) {
		return addOut{in.A + in.B}, nil
	})
	AddTool(s, Tool{Name: "ask"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		a, err := req.Elicit(ctx, "name", &ElicitParams{Message: "Name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)})
		if err != nil {
			return "", err
		}
		roots, err := req.Roots(ctx, "roots")
		if err != nil {
			return "", err
		}
		m, err := req.Sample(ctx, "sample", &CreateMessageParams{Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("hi")}}}, MaxTokens: 5})
		if err != nil {
			return "", err
		}
		return a.Action + " " + string(a.Content) + " " + roots[0].URI + " " + m.Content[0].Text, nil
	})
	AddTool(s, Tool{Name: "count"}, func(ctx context.Context, req *Request, in struct {
		To int `json:"to"`
	}) (string, error) {
		for i := range in.To {
			if err := req.Progress(ctx, ProgressParams{Progress: float64(i + 1)}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	AddTool(s, Tool{Name: "wait"}, func(ctx context.Context, _ *Request, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	AddTool(s, Tool{Name: "fail"}, func(context.Context, *Request, struct{}) (string, error) {
		return "", errors.New("it failed")
	})
	AddTool(s, Tool{Name: "panic"}, func(context.Context, *Request, struct{}) (string, error) { panic("secret") })
	s.AddResource(Resource{URI: "test://a", Name: "a", MIMEType: "text/plain"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: "A"}}}, nil
	})
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://users/{id}", Name: "user"}, func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: req.Vars["id"]}}}, nil
	})
	s.AddPrompt(Prompt{Name: "greet", Arguments: []PromptArgument{{Name: "name", Required: true}}}, func(_ context.Context, req *Request) (*GetPromptResult, error) {
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Text("hi " + req.Vars["name"])}}}, nil
	})
	return s
}

// answering are options of a client that answers everything.
func answering() ClientOptions {
	return ClientOptions{
		Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
			return &ElicitResult{Action: "accept", Content: json.RawMessage(`{"name":"Ada"}`)}, nil
		},
		Sample: func(context.Context, *CreateMessageParams) (*CreateMessageResult, error) {
			return &CreateMessageResult{Role: "assistant", Model: "m", Content: []Content{Text("sampled")}}, nil
		},
		Roots: func(context.Context) ([]Root, error) { return []Root{{URI: "file:///r"}}, nil },
	}
}

// pair connects a client of the given versions, nil for all, to a server.
func pair(t *testing.T, s *Server, opts ClientOptions) *ClientSession {
	t.Helper()
	ct, st := InMemory()
	ss, err := s.Connect(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(context.Background(), ct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); ss.Close() })
	return cs
}

func everyVersion(t *testing.T, f func(t *testing.T, version string)) {
	for _, rev := range revisions {
		t.Run(rev.version, func(t *testing.T) { f(t, rev.version) })
	}
}

func TestConversationAtEveryRevision(t *testing.T) {
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		opts := answering()
		opts.Versions = []string{version}
		cs := pair(t, testServer(nil), opts)
		ctx := context.Background()
		if got := cs.Server().ProtocolVersion; got != version || cs.Server().Name != "test" {
			t.Errorf("server %+v", cs.Server())
		}
		if out, err := CallTool[addOut](ctx, cs, "add", addIn{9007199254740993, 1}); err != nil && revisionOf(version).atLeast(rev20250618) || err == nil && out.Sum != 9007199254740994 {
			t.Errorf("add = %+v, %v", out, err)
		}
		var names []string
		for tool, err := range cs.Tools(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != "add ask count wait fail panic" {
			t.Errorf("tools %s", got)
		}
		if r, err := cs.ReadResource(ctx, "test://users/7"); err != nil || r.Contents[0].Text != "7" {
			t.Errorf("read %+v, %v", r, err)
		}
		if p, err := cs.GetPrompt(ctx, "greet", map[string]string{"name": "Bo"}); err != nil || p.Messages[0].Content.Text != "hi Bo" {
			t.Errorf("prompt %+v, %v", p, err)
		}
		if err := cs.Ping(ctx); err != nil {
			t.Error(err)
		}
		if revisionOf(version).atLeast(rev20250618) {
			if got, err := CallTool[string](ctx, cs, "ask", nil); err != nil || got != `accept {"name":"Ada"} file:///r sampled` {
				t.Errorf("ask = %q, %v", got, err)
			}
		}
		var seen []float64
		view := cs.With(CallOptions{Progress: func(p ProgressParams) { seen = append(seen, p.Progress) }})
		if got, err := CallTool[string](ctx, view, "count", map[string]int{"to": 3}); err != nil || got != "done" || len(seen) != 3 {
			t.Errorf("count = %q, %v, progress %v", got, err, seen)
		}
		var failed *ToolError
		if _, err := CallTool[string](ctx, cs, "fail", nil); !errors.As(err, &failed) || failed.Error() != "mcp: it failed" {
			t.Errorf("fail: %v", err)
		}
		var peer *Error
		if _, err := CallTool[string](ctx, cs, "panic", nil); !errors.As(err, &peer) || peer.Code != CodeInternalError || strings.Contains(peer.Message, "secret") {
			t.Errorf("panic: %v", err)
		}
	})
}

// A typed call, validated, over a byte stream: what the server allocates.
func TestTypedCallCeiling(t *testing.T) {
	const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}},`
	for _, c := range []struct {
		name, meta    string
		allocs, bytes float64
	}{{"legacy", "", 40, 3 << 10}, {"modern", modern, 50, 4 << 10}} {
		t.Run(c.name, func(t *testing.T) {
			serverIn, clientOut := io.Pipe()
			clientIn, serverOut := io.Pipe()
			ss, err := testServer(nil).Connect(context.Background(), &Stream{Reader: serverIn, Writer: serverOut})
			if err != nil {
				t.Fatal(err)
			}
			defer ss.Close()
			answers := bufio.NewReaderSize(clientIn, 1<<16)
			exchange := func(line []byte) []byte {
				clientOut.Write(line)
				answer, err := answers.ReadSlice('\n')
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			exchange([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"))
			call := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + c.meta + `"name":"add","arguments":{"a":9007199254740993,"b":1}}}` + "\n")
			if got := exchange(call); !bytes.Contains(got, []byte(`"structuredContent":{"sum":9007199254740994}`)) {
				t.Fatalf("answer %s", got)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			allocs := testing.AllocsPerRun(200, func() { exchange(call) })
			runtime.ReadMemStats(&after)
			size := float64(after.TotalAlloc-before.TotalAlloc) / 201
			t.Logf("%.0f allocations, %.0f bytes", allocs, size)
			if allocs > c.allocs || size > c.bytes {
				t.Errorf("%.0f allocations and %.0f bytes a call; at most %.0f and %.0f", allocs, size, c.allocs, c.bytes)
			}
		})
	}
}
