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

// Go's nil leaves as what the tool's own schema promises.
func TestNilOfAGoResultFitsItsSchema(t *testing.T) {
	s := mcp.NewServer(mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, mcp.Tool{Name: "nil"}, func(context.Context, *mcp.Request, struct{}) (nilOut, error) {
		return nilOut{In: []nilInner{{}}, Deep: map[string]nilInner{"k": {}}, Text: "null"}, nil
	})
	ct, st := mcp.InMemory()
	ss, err := s.Connect(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	cs, err := mcp.NewClient(mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), ct)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	r, err := cs.CallTool(context.Background(), "nil", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"items":[],"by":{},"raw":"","in":[{"l":[]}],"deep":{"k":{"l":[]}},"any":null,"text":"null"}`
	if got := string(r.StructuredContent); got != want || r.Content[0].Text != want {
		t.Errorf("structured content %s\nwant %s", got, want)
	}
}
