package mcp_test

import (
	"context"
	"testing"
	"time"

	"mcpkit/mcp"
)

type nilInner struct {
	L []int `json:"l"`
}

type nilOut struct {
	Items []string            `json:"items"`
	By    map[string]int      `json:"by"`
	Raw   []byte              `json:"raw"`
	At    *time.Time          `json:"at"`
	In    []nilInner          `json:"in"`
	Deep  map[string]nilInner `json:"deep"`
	Any   any                 `json:"any"`
	Text  string              `json:"text"`
}

// connected returns a client's session with s.
func connected(t *testing.T, s *mcp.Server) *mcp.ClientSession {
	t.Helper()
	ct, st := mcp.InMemory()
	ss, err := s.Connect(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), ct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); ss.Close() })
	return cs
}

// Go's nil leaves as what the tool's own schema promises.
func TestNilOfAGoResultFitsItsSchema(t *testing.T) {
	s := mcp.NewServer(mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, mcp.Tool{Name: "nil"}, func(context.Context, *mcp.Request, struct{}) (nilOut, error) {
		return nilOut{In: []nilInner{{}}, Deep: map[string]nilInner{"k": {}}, Text: "null"}, nil
	})
	cs := connected(t, s)
	r, err := cs.CallTool(context.Background(), "nil", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"items":[],"by":{},"raw":"","in":[{"l":[]}],"deep":{"k":{"l":[]}},"any":null,"text":"null"}`
	if got := string(r.StructuredContent); got != want || r.Content[0].Text != want {
		t.Errorf("structured content %s\nwant %s", got, want)
	}
}

// What a typed handler may return beside values: nothing, and a whole result.
func TestTypedResultsThatAreNoStructures(t *testing.T) {
	s := mcp.NewServer(mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, mcp.Tool{Name: "nothing"}, func(context.Context, *mcp.Request, struct{}) (any, error) { return nil, nil })
	mcp.AddTool(s, mcp.Tool{Name: "whole"}, func(context.Context, *mcp.Request, struct{}) (mcp.CallToolResult, error) {
		return mcp.CallToolResult{Content: []mcp.Content{mcp.Text("a"), mcp.Text("b")}}, nil
	})
	var seen []string
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			if req.Method == "tools/call" {
				seen = append(seen, req.Name+string(req.Arguments))
			}
			return next(ctx, req)
		}
	})
	cs := connected(t, s)
	for name, want := range map[string]int{"nothing": 0, "whole": 2} {
		r, err := cs.CallTool(context.Background(), name, map[string]any{})
		if err != nil || r.IsError || len(r.Content) != want || r.StructuredContent != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for tool := range cs.Tools(context.Background()) {
		if tool.OutputSchema != nil {
			t.Errorf("%s has an output schema", tool.Name)
		}
	}
	if len(seen) != 2 || len(seen[0]) < 2 || seen[0] != "nothing{}" && seen[0] != "whole{}" {
		t.Errorf("middleware saw %q", seen)
	}
}
