package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strings"
	"testing"
)

// refused returns the message of the panic of f, "" if it does not.
func refused(f func()) (message string) {
	defer func() {
		if p := recover(); p != nil {
			message = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

func TestRegistrationKeepsTheRules(t *testing.T) {
	shows(t, "resources.priority", "icons.scheme.reject", "meta.key.prefix", "meta.key.label", "meta.key.name", "meta.key.reserved-any-label", "meta.key.reserved-second-label", "version.ext.identifier")
	priority := func(f float64) *Annotations { return &Annotations{Priority: &f} }
	s := emptyServer(nil)
	noTool := func(context.Context, *Request) (*CallToolResult, error) { return nil, nil }
	noRead := func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil }
	noPrompt := func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil }
	object := json.RawMessage(`{"type":"object"}`)
	for want, f := range map[string]func(){
		`AddTool "": a tool needs a name and a handler`: func() { s.AddTool(Tool{InputSchema: object}, noTool) },
		`tool name "a\xff" is not UTF-8`:                func() { s.AddTool(Tool{Name: "a\xff", InputSchema: object}, noTool) },
		`AddTool "a": icon "http://x"`: func() {
			s.AddTool(Tool{Name: "a", InputSchema: object, Icons: []Icon{{Src: "http://x"}}}, noTool)
		},
		`AddTool "b": _meta key "io.modelcontextprotocol/x"`: func() {
			s.AddTool(Tool{Name: "b", InputSchema: object, Meta: Meta{"io.modelcontextprotocol/x": nil}}, noTool)
		},
		`AddResource "test://a": annotations: priority 1.5`: func() {
			s.AddResource(Resource{URI: "test://a", Name: "a", Annotations: priority(1.5)}, noRead)
		},
		`priority NaN`: func() {
			s.AddResource(Resource{URI: "test://a", Name: "a", Annotations: priority(math.NaN())}, noRead)
		},
		`AddResource "test://b": icon "javascript:1"`: func() {
			s.AddResource(Resource{URI: "test://b", Name: "a", Icons: []Icon{{Src: "javascript:1"}}}, noRead)
		},
		`AddResource "test://c": _meta key "1a/b"`: func() { s.AddResource(Resource{URI: "test://c", Name: "a", Meta: Meta{"1a/b": nil}}, noRead) },
		`AddResourceTemplate "test://{a}": annotations: priority -1`: func() {
			s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://{a}", Name: "a", Annotations: priority(-1)}, noRead)
		},
		`AddPrompt "p": icon "file:///x"`:         func() { s.AddPrompt(Prompt{Name: "p", Icons: []Icon{{Src: "file:///x"}}}, noPrompt) },
		`AddPrompt "q": _meta key "-x"`:           func() { s.AddPrompt(Prompt{Name: "q", Meta: Meta{"-x": nil}}, noPrompt) },
		`NewServer "n": icon "ftp://x"`:           func() { NewServer(Implementation{Name: "n", Icons: []Icon{{Src: "ftp://x"}}}, nil) },
		`opts.Cache.CacheScope is "shared"`:       func() { emptyServer(&ServerOptions{Cache: CacheHints{CacheScope: "shared"}}) },
		`extension "plain": an identifier`:        func() { emptyServer(withExtension("plain", `{}`)) },
		`extension "a.b/c": the settings must be`: func() { emptyServer(withExtension("a.b/c", `[]`)) },
	} {
		if got := refused(f); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := refused(func() {
		emptyServer(withExtension("com.example/x", `{"a":1}`))
		s.AddResource(Resource{URI: "test://ok", Name: "ok", Annotations: priority(1), Icons: []Icon{{Src: "https://x/y.png"}, {Src: "data:image/png;base64,AA=="}}, Meta: Meta{"com.example/a.b": json.RawMessage("1")}}, noRead)
	}); got != "" {
		t.Error(got)
	}
}

func withExtension(id, settings string) *ServerOptions {
	return &ServerOptions{Capabilities: &ServerCapabilities{Extensions: map[string]json.RawMessage{id: json.RawMessage(settings)}}}
}

func TestDiscouragedToolNamesAreWarnings(t *testing.T) {
	shows(t, "tools.name.charset", "tools.name.length", "tools.name.unique")
	leakCheck(t)
	var log bytes.Buffer
	s := emptyServer(&ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for name, warned := range map[string]bool{"a": false, "A-1_b.c": false, strings.Repeat("x", 128): false, strings.Repeat("x", 129): true, "a b": true, "a,b": true, "ä": true, "a/b": true} {
		log.Reset()
		rawTool(s, name, func(context.Context, *Request) (*CallToolResult, error) { return textResult("ran"), nil })
		rawTool(s, name, func(context.Context, *Request) (*CallToolResult, error) { return textResult("ran"), nil })
		if strings.Contains(log.String(), "WARN") != warned {
			t.Errorf("%q: %s", name, &log)
		}
	}
	_, ask := opened(t, s, "2026-07-28", "{}")
	if got := strings.Count(ask("1", "tools/list", ""), `"inputSchema"`); got != 8 {
		t.Errorf("%d tools", got)
	}
	fits(t, ask("2", "tools/call", `"name":"a b"`), `{"result":{"content":[{"text":"ran"}]}}`)
}

type stringer interface{ String() string }

// addTyped registers a tool of these types and returns why it was refused.
func addTyped[In, Out any]() string {
	return refused(func() {
		AddTool(emptyServer(nil), Tool{Name: "t"}, func(context.Context, *Request, In) (out Out, err error) { return out, nil })
	})
}

func TestTypesThatCannotBeToolsAreRefused(t *testing.T) {
	shows(t, "tools.input.object", "tools.input.type-object")
	for want, got := range map[string]string{
		"which the interface error cannot hold":             addTyped[error, string](),
		"which the interface mcp.stringer cannot hold":      addTyped[*stringer, string](),
		"which int is not":                                  addTyped[int, string](),
		"which []int is not":                                addTyped[[]int, string](),
		"which big.Int is not":                              addTyped[big.Int, string](),
		"has no JSON form":                                  addTyped[func(), string](),
		"map[string]big.Int has values of big.Int in a map": addTyped[struct{}, map[string]big.Int](),
		"struct { A map[int][2]struct { B big.Int } } has values of big.Int": addTyped[struct{}, struct {
			A map[int][2]struct{ B big.Int }
		}](),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, got := range []string{
		addTyped[any, any](), addTyped[map[string]any, error](), addTyped[struct{}, []big.Int](), addTyped[map[string]big.Int, map[string]*big.Int](),
		addTyped[struct{}, map[string][]big.Int](), addTyped[struct{}, struct{ B big.Int }](), addTyped[struct{}, map[string]json.RawMessage](),
	} {
		if got != "" {
			t.Error(got)
		}
	}
}

// A result that cannot be sent is the server's fault, whether it has no JSON
// form or does not fit the tool's schema: the model is told nothing of it.
func TestResultsThatCannotBeSent(t *testing.T) {
	shows(t, "tools.output.conform", "errors.internal")
	leakCheck(t)
	s := emptyServer(nil)
	AddTool(s, Tool{Name: "infinite"}, func(context.Context, *Request, struct{}) (struct{ F float64 }, error) {
		return struct{ F float64 }{math.Inf(1)}, nil
	})
	AddTool(s, Tool{Name: "misfit", OutputSchema: json.RawMessage(`{"type":"object","required":["x"]}`)}, func(context.Context, *Request, struct{}) (map[string]int, error) {
		return nil, nil
	})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		_, ask := opened(t, s, version, "{}")
		for _, name := range []string{"infinite", "misfit"} {
			fits(t, ask("1", "tools/call", `"name":"`+name+`"`), `{"error":{"code":-32603,"message":"internal error"}}`)
		}
	}
}

// Before 2026-07-28 structured content is an object, and so is its schema;
// text says the same to all.
func TestStructuredContentThatIsNoObject(t *testing.T) {
	shows(t, "tools.output.type-object", "tools.structured.object", "tools.structured.text")
	leakCheck(t)
	s := emptyServer(nil)
	AddTool(s, Tool{Name: "array"}, func(context.Context, *Request, struct{}) ([]int, error) { return []int{1, 2}, nil })
	AddTool(s, Tool{Name: "null"}, func(context.Context, *Request, struct{}) (*int, error) { return nil, nil })
	s.AddTool(Tool{Name: "either", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":["object","array"]}`)},
		func(context.Context, *Request) (*CallToolResult, error) {
			return &CallToolResult{StructuredContent: json.RawMessage(`{"a":[]}`)}, nil
		})
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		_, ask := opened(t, s, version, "{}")
		list, array, either := ask("1", "tools/list", ""), ask("1", "tools/call", `"name":"array"`), ask("1", "tools/call", `"name":"either"`)
		fits(t, array, `{"result":{"content":[{"type":"text","text":"[1,2]"}]}}`)
		fits(t, either, `{"result":{"structuredContent":{"a":[]}}}`)
		if version == "2026-07-28" {
			fits(t, list, `{"result":{"tools":[{"outputSchema":{"type":"array"}},{},{"outputSchema":{"type":["object","array"]}}]}}`)
			fits(t, array, `{"result":{"structuredContent":[1,2]}}`)
		} else {
			fits(t, list, `{"result":{"tools":[{"outputSchema":null},{"outputSchema":null},{"outputSchema":null}]}}`)
			fits(t, array, `{"result":{"structuredContent":null}}`)
		}
	}
}

func TestEmbeddedResourcesNeedTheCapability(t *testing.T) {
	shows(t, "tools.content.embedded-caps")
	leakCheck(t)
	for _, declared := range []bool{false, true} {
		var log bytes.Buffer
		s := emptyServer(&ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		AddTool(s, Tool{Name: "t"}, func(context.Context, *Request, struct{}) (Content, error) {
			return EmbeddedResource(ResourceContents{URI: "test://a", Text: "A"}), nil
		})
		if declared {
			s.AddResource(Resource{URI: "test://a", Name: "a"}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil })
		}
		_, ask := opened(t, s, "2026-07-28", "{}")
		for range 2 {
			fits(t, ask("1", "tools/call", `"name":"t"`), `{"result":{"content":[{"type":"resource","resource":{"uri":"test://a","text":"A"}}]}}`)
		}
		if got := memberOf(t, ask("2", "server/discover", ""), "result", "capabilities", "resources") != ""; got != declared {
			t.Errorf("declared: %v", got)
		}
		if got := strings.Count(log.String(), "WARN"); got != 1 && !declared || got != 0 && declared {
			t.Errorf("declared %v: %s", declared, &log)
		}
	}
}
