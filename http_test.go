package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"
)

func httpTestServer() *Server {
	s := NewServer(Implementation{Name: "t", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	AddTool(s, Tool{Name: "echo"}, func(ctx context.Context, req *Request, in in) (string, error) { return in.Text, nil })
	AddTool(s, Tool{Name: "progress"}, func(ctx context.Context, req *Request, in in) (string, error) {
		for i := range 3 {
			req.Progress(ctx, ProgressParams{Progress: float64(i + 1)})
		}
		return "done", nil
	})
	AddTool(s, Tool{Name: "ask"}, func(ctx context.Context, req *Request, in in) (string, error) {
		r, err := req.Elicit(ctx, "k", &ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)})
		if err != nil {
			return "", err
		}
		return r.Action, nil
	})
	AddTool(s, Tool{Name: "poll"}, func(ctx context.Context, req *Request, in in) (string, error) {
		req.CloseStream(100 * time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		return "polled", nil
	})
	s.AddTool(Tool{Name: "region", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}`)},
		func(ctx context.Context, req *Request) (*CallToolResult, error) {
			return &CallToolResult{Content: []Content{Text(fmt.Sprint(req.Header["Mcp-Param-Region"], req.Header["Mcp-Param-N"]))}}, nil
		})
	return s
}

func args(name string) map[string]any {
	if name == "region" {
		return map[string]any{"region": "ü", "n": 42}
	}
	return map[string]any{"text": "hi"}
}

func TestHTTPSmoke(t *testing.T) {
	for _, opts := range []*HTTPOptions{nil, {JSON: true}, {Stateless: true}} {
		for _, version := range []string{Version20241105, Version20250326, Version20250618, Version20251125, Version20260728} {
			t.Run(fmt.Sprintf("%+v/%s", opts, version), func(t *testing.T) {
				h := NewHTTPHandler(httpTestServer(), opts)
				hs := httptest.NewServer(h)
				defer hs.Close()
				c := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{
					Versions: []string{version},
					Elicit: func(ctx context.Context, p *ElicitParams) (*ElicitResult, error) {
						return &ElicitResult{Action: "decline"}, nil
					},
				})
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				cs, err := c.Connect(ctx, &HTTP{URL: hs.URL})
				if err != nil {
					t.Fatal(err)
				}
				for tool, err := range cs.Tools(ctx) {
					if err != nil {
						t.Fatal(err)
					}
					t.Log(tool.Name)
				}
				for _, name := range []string{"echo", "progress", "ask", "poll", "region"} {
					n := 0
					out, err := CallTool[string](ctx, cs.With(CallOptions{Progress: func(ProgressParams) { n++ }}), name, args(name))
					t.Log(name, out, n, err)
				}
				if err := cs.Close(); err != nil {
					t.Error(err)
				}
				if err := h.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				if len(h.sessions)+len(h.live) != 0 {
					t.Error("left", len(h.sessions), len(h.live))
				}
			})
		}
	}
}

func TestSSESmoke(t *testing.T) {
	h := NewHTTPHandler(httpTestServer(), nil)
	hs := httptest.NewServer(h.SSE())
	defer hs.Close()
	c := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{
		Elicit: func(ctx context.Context, p *ElicitParams) (*ElicitResult, error) {
			return &ElicitResult{Action: "decline"}, nil
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cs, err := c.Connect(ctx, &HTTP{URL: hs.URL + "/sse"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"echo", "progress", "ask", "poll", "region"} {
		n := 0
		out, err := CallTool[string](ctx, cs.With(CallOptions{Progress: func(ProgressParams) { n++ }}), name, args(name))
		t.Log(name, out, n, err)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
