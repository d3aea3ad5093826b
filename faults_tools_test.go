//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Faults of tools, schemas and results.

// misbehaviour is what user code can do instead of returning.
var misbehaviour = map[string]func(){
	"panics with text": func() { panic("secret") }, "panics with an error": func() { panic(errors.New("secret")) },
	"panics with an Error": func() { panic(&Error{Code: 7, Message: "secret"}) }, "writes to a nil map": func() { map[string]int(nil)["secret"] = len(runtime.GOOS) },
	"dereferences nil": func() { var p *Tool; p.Name = "secret" }, "panics with nil": func() { panic(nil) }, "ends its goroutine": func() { runtime.Goexit() },
}

type explosive struct{ explode func() }

func (e explosive) MarshalJSON() ([]byte, error) { e.explode(); return []byte("{}"), nil }
func (e explosive) Error() string                { e.explode(); return "x" }

// TestFault28Panics lets the code of users misbehave wherever a server runs
// it. The peer learns that something failed, and no more; the rest goes on.
func TestFault28Panics(t *testing.T) {
	shows(t, "errors.internal", "prompts.error.internal", "resources.error.internal", "completion.error.internal")
	for name, explode := range misbehaviour {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			s := NewServer(Implementation{Name: "test", Version: "1"}, &ServerOptions{Complete: func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) { explode(); return nil, nil }})
			AddTool(s, Tool{Name: "typed"}, func(context.Context, *Request, struct{}) (string, error) { explode(); return "", nil })
			rawTool(s, "raw", func(context.Context, *Request) (*CallToolResult, error) { explode(); return nil, nil })
			rawTool(s, "error", func(context.Context, *Request) (*CallToolResult, error) { return nil, explosive{explode} })
			AddTool(s, Tool{Name: "result"}, func(context.Context, *Request, struct{}) (any, error) {
				return struct{ json.Marshaler }{explosive{explode}}, nil
			})
			s.AddPrompt(Prompt{Name: "p"}, func(context.Context, *Request) (*GetPromptResult, error) { explode(); return nil, nil })
			s.AddResource(Resource{URI: "x:r", Name: "r"}, func(context.Context, *Request) (*ReadResourceResult, error) { explode(); return nil, nil })
			s.AddResourceTemplate(ResourceTemplate{URITemplate: "x:t/{a}", Name: "t"}, func(context.Context, *Request) (*ReadResourceResult, error) { explode(); return nil, nil })
			s.Handle("x/custom", func(context.Context, *Request) (any, error) { explode(); return nil, nil })
			s.Handle("x/result", func(context.Context, *Request) (any, error) { return struct{ json.Marshaler }{explosive{explode}}, nil })
			s.Use(func(next Handler) Handler {
				return func(ctx context.Context, req *Request) (any, error) {
					if req.Method == "x/middleware" || strings.HasPrefix(req.Method, "notifications/x") {
						explode()
					}
					return next(ctx, req)
				}
			})
			c, _ := dialServer(t, s)
			c.initialize("2025-11-25", "{}")
			for _, call := range []serverCall{
				{methodToolsCall, `"name":"typed"`}, {methodToolsCall, `"name":"raw"`}, {methodToolsCall, `"name":"error"`}, {methodToolsCall, `"name":"result"`}, {methodPromptsGet, `"name":"p"`},
				{methodResourcesRead, `"uri":"x:r"`}, {methodResourcesRead, `"uri":"x:t/1"`}, {"x/custom", ""}, {"x/result", ""}, {"x/middleware", ""},
				{methodComplete, `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`},
			} {
				if name == "ends its goroutine" && strings.Contains(call.params+call.method, "result") {
					continue // no handler, but an encoder: only a test that fails does so
				}
				for _, frame := range []string{request("1", call.method, call.params), modernRequest("1", call.method, call.params, "{}")} {
					got := c.call(frame)
					if strings.Contains(got, "secret") || strings.Contains(got, ".go:") {
						t.Errorf("%s told: %s", frame, got)
					}
					fits(t, got, `{"id":1,"error":{"code":-32603,"data":null},"result":null}`)
				}
				c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
				c.alive()
			}
		})
	}
}

// The client's callbacks.
func TestFault28ClientPanics(t *testing.T) {
	shows(t, "roots.error.internal", "errors.internal")
	for name, explode := range misbehaviour {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opts := ClientOptions{
					Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) { explode(); return nil, nil },
					Sample: func(context.Context, *CreateMessageParams) (*CreateMessageResult, error) { explode(); return nil, nil },
					Roots:  func(context.Context) ([]Root, error) { explode(); return nil, nil },
					Log:    func(context.Context, *LogParams) { explode() },
					Notify: func(context.Context, string, json.RawMessage) { explode() },
				}
				cs, s := connected(t, Version20251125, opts, each(`{"contents":[]}`))
				for _, question := range []string{
					`"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}`,
					`"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}`, `"method":"roots/list"`,
				} {
					s.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`, `{"jsonrpc":"2.0","id":1,`+question+`}`)
					s.received()
					fits(t, s.raw[len(s.raw)-1], `{"id":1,"error":{"code":-32603,"data":null}}`)
					if strings.Contains(s.raw[len(s.raw)-1], "secret") {
						t.Errorf("told: %s", s.raw[len(s.raw)-1])
					}
				}
				if _, err := cs.With(CallOptions{Insist: true}).ReadResource(t.Context(), "x:y"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestFault29NilIsNotNull: the zero value of every type of the protocol has no
// null, but where the protocol says so.
func TestFault29NilIsNotNull(t *testing.T) {
	shows(t, "base.schema.required-fields")
	for _, pt := range protocolTypes {
		for _, rev := range revisions {
			if _, ok := pt.at(rev); !ok {
				continue
			}
			v := reflect.New(reflect.TypeOf(pt.value))
			if f := v.Elem().FieldByName("Type"); f.IsValid() && pt.kind != "" {
				f.SetString(pt.kind)
			}
			doc, err := encodeAt(nil, v.Interface(), rev)
			if err != nil { // of content without a type: nothing goes out
				continue
			}
			if name := nullArray(doc); name != "" && name != "progressToken" { // which only a request has to give
				t.Errorf("%T %s at %s: %s is null in %s", pt.value, pt.kind, rev.version, name, doc)
			}
		}
	}
}

// A client takes null, null within and absent for what must be an array, from
// servers that write so.
func TestFault29ClientTakesNull(t *testing.T) {
	for _, values := range []string{``, `null`, `[]`, `[null]`} {
		t.Run(values, func(t *testing.T) {
			eachEra(t, func(t *testing.T, version string) {
				body := `{}`
				if values != "" {
					body = strings.ReplaceAll(`{"tools":@,"prompts":@,"resources":@,"resourceTemplates":@,"content":@,"contents":@,"messages":@,"completion":{"values":@}}`, "@", values)
				}
				cs, _ := connected(t, version, ClientOptions{CacheSize: -1}, each(body))
				for range 2 { // no call may panic, and none may end the session
					for name, err := range callEverything(t.Context(), cs.With(CallOptions{Insist: true})) {
						if err != nil && (values != "[null]" && (values != "" || name != "Complete") || errors.Is(err, ErrClosed)) {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			})
		})
	}
}

// TestFault31RootsOfInputSchemas: an inferred schema is an object with
// properties; what is no object is refused at registration.
func TestFault31RootsOfInputSchemas(t *testing.T) {
	shows(t, "tools.input.object", "tools.input.type-object")
	leakCheck(t)
	s := emptyServer(nil)
	type args struct {
		A string `json:"a,omitempty"`
	}
	AddTool(s, Tool{Name: "empty"}, func(context.Context, *Request, struct{}) (string, error) { return "", nil })
	AddTool(s, Tool{Name: "struct"}, func(context.Context, *Request, args) (string, error) { return "", nil })
	AddTool(s, Tool{Name: "pointer"}, func(_ context.Context, _ *Request, in *args) (string, error) { return in.A, nil })
	AddTool(s, Tool{Name: "map"}, func(context.Context, *Request, map[string]any) (string, error) { return "", nil })
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	got := c.call(request("1", "tools/list", ""))
	fits(t, got, `{"result":{"tools":[{"inputSchema":{"type":"object","properties":{}}},{"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}},{"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}},{"inputSchema":{"type":"object"}}]}}`)
	for _, name := range []string{"empty", "struct", "pointer", "map"} {
		for _, args := range []string{``, `,"arguments":{}`} {
			fits(t, c.call(request("1", "tools/call", `"name":"`+name+`"`+args)), `{"result":{"isError":null,"content":[{"text":""}]}}`)
		}
	}
	for _, schema := range []string{"", "null", "true", "false", "[]", "7", `"object"`, "{}", `{"type":"string"}`, `{"type":["object","null"]}`, `{"type":["object"]}`, `{"Type":"object"}`, `{"type":"object","type":"string"}`, `{oops`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the schema %s was taken", schema)
				}
			}()
			s.AddTool(Tool{Name: "x", InputSchema: json.RawMessage(schema)}, func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
		}()
	}
}

// TestFault34ArgumentsAreJSON: what counts is the JSON that came, not the Go
// value that it becomes.
func TestFault34ArgumentsAreJSON(t *testing.T) {
	shows(t, "tools.error.invalid-args", "tools.sec.validate-input")
	leakCheck(t)
	s := emptyServer(nil)
	type args struct {
		N int    `json:"n"`
		S string `json:"s"`
	}
	for name, required := range map[string]string{"required": `,"required":["s"]`, "optional": ``} {
		AddTool(s, Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":5},"s":{"type":"string"}}` + required + `}`)},
			func(_ context.Context, req *Request, in args) (string, error) {
				return fmt.Sprintf("%d %q", in.N, in.S), nil
			})
	}
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	for _, call := range []struct{ tool, args, want string }{
		{"required", `,"arguments":{"s":"","n":0}`, `0 ""`}, {"required", `,"arguments":{"s":"x"}`, `5 "x"`}, {"required", `,"arguments":{}`, ""}, {"required", ``, ""},
		{"required", `,"arguments":{"S":"x"}`, ""}, {"required", `,"arguments":{"s":null}`, ""}, {"required", `,"arguments":{"s":"x","n":null}`, ""}, {"required", `,"arguments":{"s":"x","n":1.5}`, ""},
		{"required", `,"arguments":{"s":"x","n":1e2}`, `100 "x"`}, {"required", `,"arguments":{"s":"x","n":1.0}`, `1 "x"`}, {"required", `,"arguments":{"s":"x","n":1e99}`, ""}, {"required", `,"arguments":{"s":"x","n":"1"}`, ""},
		{"optional", ``, `5 ""`}, {"optional", `,"arguments":{}`, `5 ""`}, {"optional", `,"arguments":{"n":0}`, `0 ""`}, {"optional", `,"arguments":{"N":7}`, `5 ""`},
	} {
		want := `{"result":{"isError":true}}`
		if call.want != "" {
			want = `{"result":{"isError":null,"content":[{"text":` + string(appendString(nil, call.want)) + `}]}}`
		}
		fits(t, c.call(request("1", "tools/call", `"name":"`+call.tool+`"`+call.args)), want)
		fits(t, c.call(modernRequest("1", "tools/call", `"name":"`+call.tool+`"`+call.args, "{}")), want)
	}
}

// TestFault36StructuredOutput: with an output schema the structure fits it or
// the call fails here; errors need none; the text says the same.
func TestFault36StructuredOutput(t *testing.T) {
	shows(t, "tools.output.conform", "tools.structured.text", "tools.structured.object", "tools.structured.any")
	leakCheck(t)
	s := emptyServer(nil)
	type out struct {
		N int `json:"n"`
	}
	AddTool(s, Tool{Name: "value"}, func(context.Context, *Request, struct{}) (out, error) { return out{1}, nil })
	AddTool(s, Tool{Name: "pointer"}, func(context.Context, *Request, struct{}) (*out, error) { return &out{1}, nil })
	AddTool(s, Tool{Name: "nil"}, func(context.Context, *Request, struct{}) (*out, error) { return nil, nil })
	AddTool(s, Tool{Name: "error"}, func(context.Context, *Request, struct{}) (out, error) { return out{}, errors.New("no") })
	AddTool(s, Tool{Name: "array"}, func(context.Context, *Request, struct{}) ([]int, error) { return nil, nil })
	AddTool(s, Tool{Name: "number"}, func(context.Context, *Request, struct{}) (int, error) { return 0, nil })
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for name, r := range map[string]*CallToolResult{
		"own words": {Content: []Content{Text("words")}, StructuredContent: json.RawMessage(`{"n":1}`)}, "wrong": {StructuredContent: json.RawMessage(`{"n":"1"}`)}, "absent": {Content: []Content{Text("words")}},
		"an own error": {Content: []Content{Text("words")}, IsError: true}, "null": {StructuredContent: json.RawMessage(`null`)}, "none": nil,
	} {
		s.AddTool(Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: schema}, func(context.Context, *Request) (*CallToolResult, error) { return r, nil })
	}
	const fails = `{"error":{"code":-32603},"result":null}`
	for tool, want := range map[string][2]string{
		"value": {`{"result":{"structuredContent":{"n":1},"content":[{"text":"{\"n\":1}"}]}}`}, "pointer": {`{"result":{"structuredContent":{"n":1},"content":[{"text":"{\"n\":1}"}]}}`},
		"nil": {`{"result":{"structuredContent":{"n":0},"content":[{"text":"{\"n\":0}"}]}}`}, "error": {`{"result":{"isError":true,"structuredContent":null,"content":[{"text":"no"}]}}`},
		"array":     {`{"result":{"structuredContent":null,"content":[{"text":"[]"}]}}`, `{"result":{"structuredContent":[],"content":[{"text":"[]"}]}}`},
		"number":    {`{"result":{"structuredContent":null,"content":[{"text":"0"}]}}`, `{"result":{"structuredContent":0,"content":[{"text":"0"}]}}`},
		"own words": {`{"result":{"structuredContent":{"n":1},"content":[{"text":"words"}]}}`}, "wrong": {fails}, "absent": {fails}, "null": {fails}, "none": {fails},
		"an own error": {`{"result":{"isError":true,"content":[{"text":"words"}]}}`},
	} {
		c, _ := dialServer(t, s)
		if want[1] == "" {
			want[1] = want[0]
		}
		fits(t, c.call(modernRequest("1", "tools/call", `"name":"`+tool+`"`, "{}")), want[1])
		c.initialize("2025-11-25", "{}")
		fits(t, c.call(request("1", "tools/call", `"name":"`+tool+`"`)), want[0])
	}
}
