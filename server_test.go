package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// These tests are a client that knows nothing of this package: JSON lines in,
// JSON lines out.

// next reads one frame.
func (c *wireClient) next() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	frame, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("no frame: %v", err)
	}
	checkFrame(c.t, string(frame))
	return string(frame)
}

// call sends a frame and returns the one that follows.
func (c *wireClient) call(frame string) string {
	c.t.Helper()
	c.send(frame)
	return c.next()
}

// alive checks that the connection still answers, and that nothing else was
// on its way.
func (c *wireClient) alive() {
	c.t.Helper()
	fits(c.t, c.call(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`), `{"id":"alive","result":{}}`)
}

// initialize opens a session of a legacy revision.
func (c *wireClient) initialize(version, capabilities string) string {
	c.t.Helper()
	got := c.call(initializeFrame("0", version, capabilities))
	fits(c.t, got, `{"id":0,"result":{"protocolVersion":"`+version+`"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return got
}

func initializeFrame(id, version, capabilities string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":` + capabilities + `,"clientInfo":{"name":"t","version":"0"}}}`
}

// request is a request frame; params are the members of params.
func request(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

// modernRequest is a request frame of 2026-07-28.
func modernRequest(id, method, params, capabilities string) string {
	if params != "" {
		params += ","
	}
	return request(id, method, params+`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+capabilities+`}`)
}

// fits checks that a frame has all that want has: objects may have more
// members, where want has null the member must be absent, and the rest is
// the same to the digit.
func fits(t *testing.T, got, want string) {
	t.Helper()
	if err := misfit(parsed(t, got), parsed(t, want), ""); err != nil {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func misfit(got, want any, path string) error {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not an object", path)
		}
		for name, w := range want {
			g, there := object[name]
			if w == nil {
				if there {
					return fmt.Errorf("%s.%s is there", path, name)
				}
			} else if err := misfit(g, w, path+"."+name); err != nil {
				return err
			}
		}
	case []any:
		array, ok := got.([]any)
		if !ok || len(array) != len(want) {
			return fmt.Errorf("%s has not %d elements", path, len(want))
		}
		for i := range want {
			if err := misfit(array[i], want[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	default:
		if got != want {
			return fmt.Errorf("%s is %v", path, got)
		}
	}
	return nil
}

// memberOf returns a member of a frame, by its path, as JSON.
func memberOf(t *testing.T, frame string, path ...string) string {
	t.Helper()
	raw := json.RawMessage(frame)
	for _, name := range path {
		if raw == nil {
			return ""
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatalf("%v: %s", err, frame)
		}
		raw = object[name]
	}
	return string(raw)
}

// rawTool registers a tool that takes any object.
func rawTool(s *Server, name string, h ToolHandler) {
	s.AddTool(Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
}

func textResult(format string, args ...any) *CallToolResult {
	return &CallToolResult{Content: []Content{Text(fmt.Sprintf(format, args...))}}
}

func emptyServer(opts *ServerOptions) *Server {
	return NewServer(Implementation{Name: "test", Version: "1"}, opts)
}

func TestServerEchoesIDsExactly(t *testing.T) {
	shows(t, "base.response.same-id", "base.id.type", "base.result.present", "base.response.exclusive", "ping.respond", "base.jsonrpc.conform")
	leakCheck(t)
	c, _ := dialServer(t, testServer(nil))
	for _, id := range []string{`0`, `-1`, `2147483648`, `1774232524389`, `9007199254740993`, `9223372036854775807`, `18446744073709551616`, `"1"`, `"001"`, `""`, `"9007199254740993"`, `"é\u0000"`, `"\u00e9"`} {
		if got, want := c.call(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestServerTellsNumberFromStringIDs(t *testing.T) {
	shows(t, "base.response.same-id", "base.id.type", "cancel.receiver.stop")
	leakCheck(t)
	s := emptyServer(nil)
	began, release := make(chan string), make(chan struct{})
	rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		began <- req.ID.String()
		select {
		case <-release:
		case <-ctx.Done():
		}
		return textResult("%s", req.ID), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	c.send(request("1", "tools/call", `"name":"t"`))
	<-began
	c.send(request(`"1"`, "tools/call", `"name":"t"`))
	<-began
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`)
	c.alive()
	close(release)
	fits(t, c.next(), `{"id":1,"result":{"content":[{"text":"1"}]}}`)
	c.alive()
}

// Frames that are no request, or not a good one, cost only themselves.
func TestServerRefusesBadFrames(t *testing.T) {
	shows(t, "base.id.not-null", "base.id.type", "base.error.id-unreadable", "base.error.object", "base.error.code-integer", "errors.parse", "errors.invalid-request", "base.notif.no-response", "base.batch.rejected")
	leakCheck(t)
	c, _ := dialServer(t, testServer(nil))
	c.initialize("2025-11-25", "{}")
	for frame, want := range map[string]string{
		`{oops`: `{"id":null,"error":{"code":-32700}}`,
		``:      `{"id":null,"error":{"code":-32700}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"`:                `{"id":null,"error":{"code":-32700}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xff\"}": `{"id":null,"error":{"code":-32700}}`,
		`null`: `{"id":null,"error":{"code":-32600}}`,
		`42`:   `{"id":null,"error":{"code":-32600}}`,
		`"x"`:  `{"id":null,"error":{"code":-32600}}`,
		`[]`:   `{"id":null,"error":{"code":-32600}}`,
		`{}`:   `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`:                             `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`:                              `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1e400,"method":"tools/list"}`:                            `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/list"}`:                               `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":[],"method":"tools/list"}`:                               `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":true,"method":"tools/list"}`:                             `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                               `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`:                `{"id":1,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`:              `{"id":1,"error":{"code":-32600}}`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                      `{"id":1,"error":{"code":-32600}}`,
		`{"id":1,"method":"ping"}`:                                                      `{"id":1,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                           `{"id":1,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1,"method":""}`:                                          `{"id":1,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`:                          `{"id":1,"error":{"code":-32600}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                                    `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","method":"no/such/notification"}`:                             "",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`:              "",
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"panic"}}`:             "",
		`{"jsonrpc":"2.0","id":77,"result":{}}`:                                         "",
		`{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"x"}}`:        "",
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`:             "",
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x","data":[{"any":null}]}}`: "",
	} {
		c.send(frame)
		if want != "" {
			got := c.next()
			fits(t, got, want)
			if t.Failed() {
				t.Fatalf("sent %s", frame)
			}
		}
		c.alive()
	}
}

// Only the exact name of a member counts.
func TestServerMatchesMemberNamesExactly(t *testing.T) {
	shows(t, "errors.invalid-params", "tools.name.case")
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "secret", func(context.Context, *Request) (*CallToolResult, error) {
		t.Error("secret ran")
		return nil, nil
	})
	rawTool(s, "echo", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s", req.Arguments), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0","id":2,"method":"ping","Method":"tools/call","PARAMS":{"name":"secret","arguments":{}}}`:    `{"id":2,"result":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"},"param\u017f":{"name":"secret"}}`:     `{"id":2,"result":{"content":[{"text":"{}"}]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","Name":"secret","argument\u017f":[]}}`: `{"id":2,"result":{"content":[{"text":"{}"}]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"Name":"secret"}}`:                                   `{"id":2,"error":{"code":-32602}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Echo"}}`:                                     `{"id":2,"error":{"code":-32602}}`,
		`{"jsonrpc":"2.0","id":2,"method":"Ping"}`:                                                                    `{"id":2,"error":{"code":-32601}}`,
		`{"jsonrpc":"2.0","id":2,"m\u0065thod":"ping"}`:                                                               `{"id":2,"result":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"A":5,"b":2}}}`:      `{"id":2,"result":{"isError":true}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"A":1,"b":2}}}`:            `{"id":2,"result":{"isError":true}}`,
	} {
		fits(t, c.call(frame), want)
	}
}

// A member that is there twice is read as the one by some and as the other by
// others.
func TestServerRefusesMembersGivenTwice(t *testing.T) {
	shows(t, "errors.invalid-params", "tools.sec.validate-input")
	leakCheck(t)
	s := testServer(&ServerOptions{Complete: func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) { return nil, nil }})
	rawTool(s, "raw", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s", req.Arguments), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	s.Handle("x/custom", func(context.Context, *Request) (any, error) { return nil, nil })
	wide := new(strings.Builder)
	for i := range 40 {
		fmt.Fprintf(wide, `"k%d":{"same":1},`, i)
	}
	for _, call := range []struct{ method, params string }{
		{"tools/call", `"name":"add","name":"add","arguments":{"a":1,"b":2}`},
		{"tools/call", `"name":"raw","n\u0061me":"raw"`},
		{"tools/call", `"name":"raw","arguments":{},"arguments":{}`},
		{"tools/call", `"name":"add","arguments":{"a":1,"a":2,"b":2}`},
		{"tools/call", `"name":"raw","arguments":{"a":1,"a":2}`},
		{"tools/call", `"name":"raw","arguments":{"":1,"":2}`},
		{"tools/call", `"name":"raw","arguments":{"a":1,"\u0061":2}`},
		{"tools/call", `"name":"raw","arguments":{"x":[[{"y":{"a":1,"b":[],"a":2}}]]}`},
		{"tools/call", `"name":"raw","arguments":{` + wide.String() + `"k3":1}`},
		{"tools/call", `"name":"raw","arguments":{` + wide.String() + `"k39":1}`},
		{"tools/call", `"name":"raw","_meta":{},"_meta":{}`},
		{"tools/call", `"name":"raw","_meta":{"progressToken":1,"progressToken":2}`},
		{"tools/list", `"cursor":"1","cursor":"2"`},
		{"resources/read", `"uri":"test://a","uri":"test://a"`},
		{"prompts/get", `"name":"greet","arguments":{"name":"a","name":"b"}`},
		{"logging/setLevel", `"level":"info","level":"info"`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet","name":"greet"},"argument":{"name":"name","value":""}`},
		{"resources/subscribe", `"uri":"test://a","uri":"test://a"`},
		{"ping", `"_meta":{"a/b":1,"a/b":2}`},
		{"ping", `"x":{"y":1,"y":2}`},
		{"x/custom", `"x":1,"x":2`},
	} {
		fits(t, c.call(request("1", call.method, call.params)), `{"id":1,"error":{"code":-32602}}`)
	}
	for _, arguments := range []string{`{` + wide.String() + `"k":[{"same":1},{"same":1}]}`, `{"a":{"a":{"a":1}},"b":[1,1]}`} {
		got := c.call(request("1", "tools/call", `"name":"raw","arguments":`+arguments))
		quoted, _ := json.Marshal(arguments)
		fits(t, got, `{"result":{"content":[{"text":`+string(quoted)+`}]}}`)
	}
}

// Whatever params are, the answer is a result or -32602, and the connection lives.
func TestServerSurvivesParamsOfAnyShape(t *testing.T) {
	shows(t, "errors.invalid-params", "tools.error.malformed", "completion.validate", "completion.error.ref", "logging.error.level", "prompts.error.args", "prompts.args.validate", "resources.sec.uri", "base.components.legacy", "pagination.invalid", "errors.reserved.undefined", "errors.legacy-range.avoid", "errors.legacy-range.no-new")
	leakCheck(t)
	s := testServer(&ServerOptions{Complete: func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) {
		return &CompleteResult{}, nil
	}})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	optional := map[string]bool{"ping": true, "tools/list": true, "resources/list": true, "resources/templates/list": true, "prompts/list": true}
	members := map[string][]string{
		"ping": nil, "initialize": nil, "resources/list": {`"cursor":7`, `"cursor":null`, `"cursor":{}`}, "resources/templates/list": {`"cursor":7`},
		"prompts/list": {`"cursor":7`}, "tools/list": {`"cursor":7`, `"cursor":null`, `"cursor":"no"`, `"cursor":""`, `"cursor":"-1"`, `"cursor":"99999999999999999999"`},
		"tools/call":          {`"name":null`, `"name":7`, `"name":{}`, `"name":"add","arguments":null`, `"name":"add","arguments":[]`, `"name":"add","arguments":"x"`, `"name":"add","arguments":7`},
		"resources/read":      {`"uri":null`, `"uri":7`, `"uri":""`, `"uri":"a"`, `"uri":"/etc/passwd"`, `"uri":"test://a b"`},
		"resources/subscribe": {`"uri":null`, `"uri":7`, `"uri":"test://nothing"`}, "resources/unsubscribe": {`"uri":7`},
		"prompts/get":      {`"name":null`, `"name":7`, `"name":"greet"`, `"name":"greet","arguments":null`, `"name":"greet","arguments":[]`, `"name":"greet","arguments":{"name":7}`, `"name":"greet","arguments":{"name":null}`, `"name":"greet","arguments":{"other":"x"}`},
		"logging/setLevel": {`"level":null`, `"level":7`, `"level":"loud"`, `"level":"Info"`, `"level":""`},
		"completion/complete": {`"ref":null`, `"ref":{"type":"ref/prompt","name":"greet"}`, `"argument":{"name":"name","value":""}`, `"ref":{"type":"ref/prompt"},"argument":{"name":"name","value":""}`,
			`"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name"}`, `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":7}`,
			`"ref":{"type":"ref/other","name":"greet"},"argument":{"name":"name","value":""}`, `"ref":{"type":"ref/prompt","name":"no"},"argument":{"name":"name","value":""}`,
			`"ref":{"type":"ref/resource","uri":"no"},"argument":{"name":"name","value":""}`},
	}
	for method, bad := range members {
		for _, params := range []string{"null", "[]", `"x"`, "7", "true", `{"_meta":null}`, `{"_meta":[]}`, `{"_meta":{"progressToken":null}}`, `{"_meta":{"progressToken":1.5}}`, `{"_meta":{"progressToken":{}}}`} {
			fits(t, c.call(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`), `{"id":1,"error":{"code":-32602}}`)
		}
		got := c.call(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		if optional[method] {
			fits(t, got, `{"id":1,"error":null,"result":{}}`)
		} else {
			fits(t, got, `{"id":1,"error":{"code":-32602}}`)
		}
		for _, params := range bad {
			fits(t, c.call(request("1", method, params)), `{"id":1,"error":{"code":-32602}}`)
		}
		if t.Failed() {
			t.Fatal(method)
		}
	}
	c.alive()
}

func TestServerWantsInitializeFirst(t *testing.T) {
	shows(t, "lifecycle.init.first", "lifecycle.init.ping-early", "errors.method-not-found", "lifecycle.init.result", "version.dual.initialize")
	leakCheck(t)
	c, _ := dialServer(t, testServer(nil))
	c.alive()
	fits(t, c.call(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), `{"id":1,"error":{"code":-32602}}`)
	fits(t, c.call(request("2", "tools/call", `"name":"add","arguments":{"a":1,"b":1}`)), `{"id":2,"error":{"code":-32602}}`)
	fits(t, c.call(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`), `{"id":3,"error":{"code":-32601}}`)
	// The call is read before initialize is answered, and yet comes after it.
	c.send(initializeFrame("4", "2025-06-18", "{}"), request("5", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`))
	fits(t, c.next(), `{"id":4,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"test","version":"1"},"capabilities":{"tools":{},"resources":{},"prompts":{},"completions":null}}}`)
	fits(t, c.next(), `{"id":5,"result":{"structuredContent":{"sum":3}}}`)
	fits(t, c.call(initializeFrame("6", "2024-11-05", "{}")), `{"id":6,"error":{"code":-32600}}`)
	fits(t, c.call(request("7", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`)), `{"id":7,"result":{"structuredContent":{"sum":3}}}`)
}

func TestServerChoosesTheVersion(t *testing.T) {
	shows(t, "lifecycle.version.server-echo", "lifecycle.version.server-other", "lifecycle.version.server-latest", "lifecycle.errors", "version.matrix.legacy-stdio", "version.modern-only.initialize-error")
	leakCheck(t)
	for _, c := range []struct {
		versions    []string
		asked, want string
	}{
		{nil, `"2024-11-05"`, "2024-11-05"}, {nil, `"2025-03-26"`, "2025-03-26"}, {nil, `"2025-06-18"`, "2025-06-18"}, {nil, `"2025-11-25"`, "2025-11-25"},
		{nil, `"2026-07-28"`, "2025-11-25"}, {nil, `"1999-01-01"`, "2025-11-25"}, {nil, `"9999-01-01"`, "2025-11-25"}, {nil, `""`, "2025-11-25"},
		{[]string{"2025-03-26", "2024-11-05"}, `"2025-11-25"`, "2025-03-26"}, {[]string{"2024-11-05", "2026-07-28"}, `"2026-07-28"`, "2024-11-05"},
		{nil, `7`, ""}, {nil, `null`, ""}, {[]string{"2026-07-28"}, `"2025-11-25"`, "none"},
	} {
		client, _ := dialServer(t, testServer(&ServerOptions{Versions: c.versions}))
		got := client.call(request("1", "initialize", `"protocolVersion":`+c.asked+`,"capabilities":{},"clientInfo":{"name":"t","version":"0"}`))
		switch c.want {
		case "":
			fits(t, got, `{"id":1,"error":{"code":-32602}}`)
		case "none":
			fits(t, got, `{"id":1,"error":{"code":-32022,"data":{"supported":["2026-07-28"],"requested":`+c.asked+`}}}`)
		default:
			fits(t, got, `{"id":1,"result":{"protocolVersion":"`+c.want+`","resultType":null,"ttlMs":null,"_meta":null}}`)
		}
	}
	client, _ := dialServer(t, testServer(nil))
	fits(t, client.call(request("1", "initialize", `"capabilities":{},"clientInfo":{"name":"t","version":"0"}`)), `{"error":{"code":-32602}}`)
	fits(t, client.call(initializeFrame("2", "2025-11-25", "{}")), `{"id":2,"result":{"protocolVersion":"2025-11-25"}}`) // the refusal cost nothing
}

// A server that does not speak 2026-07-28 is to its clients what servers were
// before.
func TestLegacyOnlyServerKnowsNothingOfLaterMeta(t *testing.T) {
	shows(t, "errors.method-not-found")
	leakCheck(t)
	s := testServer(&ServerOptions{Versions: []string{Version20250618}})
	c, _ := dialServer(t, s)
	fits(t, c.call(modernRequest("1", "server/discover", "", "{}")), `{"id":1,"error":{"code":-32601}}`)
	c.initialize("2025-06-18", "{}")
	fits(t, c.call(modernRequest("2", "tools/list", "", "{}")), `{"id":2,"result":{"resultType":null}}`)
	cs := pair(t, s, ClientOptions{})
	if got := cs.Server().ProtocolVersion; got != Version20250618 {
		t.Errorf("our client speaks %q with it", got)
	}
}

func TestServerServesModernRequestsByThemselves(t *testing.T) {
	shows(t, "version.no-discover-needed", "version.dual.meta", "version.dual.concurrent", "stateless.no-prior-context", "stateless.interleaving", "discover.implement", "discover.result.shape", "meta.request.missing-32602", "meta.request.client-info-optional", "version.unsupported", "base.components.modern", "errors.reserved.meaning", "base.error.id-required")
	leakCheck(t)
	s := testServer(&ServerOptions{Instructions: "Be kind."})
	c, _ := dialServer(t, s)
	fits(t, c.call(modernRequest("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`, "{}")), `{"id":1,"result":{"resultType":"complete","structuredContent":{"sum":3}}}`)
	const version, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for meta, want := range map[string]string{
		caps:    `{"code":-32602}`,
		version: `{"code":-32602}`,
		`"io.modelcontextprotocol/protocolVersion":7,` + caps:                       `{"code":-32602}`,
		`"io.modelcontextprotocol/protocolVersion":null,` + caps:                    `{"code":-32602}`,
		version + `,"io.modelcontextprotocol/clientCapabilities":[]`:                `{"code":-32602}`,
		version + `,"io.modelcontextprotocol/clientCapabilities":null`:              `{"code":-32602}`,
		version + `,"io.modelcontextprotocol/clientCapabilities":{"roots":7}`:       `{"code":-32602}`,
		version + `,` + caps + `,"io.modelcontextprotocol/clientInfo":7`:            `{"code":-32602}`,
		version + `,` + caps + `,"io.modelcontextprotocol/clientInfo":{"name":"x"}`: `{"code":-32602}`,
		version + `,` + caps + `,"io.modelcontextprotocol/logLevel":"loud"`:         `{"code":-32602}`,
		version + `,` + caps + `,"io.modelcontextprotocol/logLevel":7`:              `{"code":-32602}`,
		version + `,` + version + `,` + caps:                                        `{"code":-32602}`,
		`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps:            `{"code":-32022,"data":{"supported":["2026-07-28"],"requested":"2027-01-01"}}`,
		`"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + caps:            `{"code":-32022,"data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}`,
		`"io.modelcontextprotocol/protocolVersion":"",` + caps:                      `{"code":-32022,"data":{"supported":["2026-07-28"],"requested":""}}`,
		`"IO.modelcontextprotocol/protocolVersion":"2026-07-28",` + caps:            `{"code":-32602}`,
	} {
		fits(t, c.call(request("2", "tools/list", `"_meta":{`+meta+`}`)), `{"id":2,"result":null,"error":`+want+`}`)
	}
	for range 2 { // as often as one likes, known version or not
		fits(t, c.call(request("3", "server/discover", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01",`+caps+`}`)), `{"id":3,"error":{"code":-32022}}`)
		fits(t, c.call(modernRequest("4", "server/discover", "", "{}")), `{"id":4,"result":{"supportedVersions":["2026-07-28"],"instructions":"Be kind.","capabilities":{"tools":{},"prompts":{},"resources":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`)
	}
	fits(t, c.call(`{"jsonrpc":"2.0","id":4,"method":"server/discover"}`), `{"id":4,"error":{"code":-32602}}`)
	c.initialize("2025-06-18", `{"roots":{}}`)
	for range 3 { // both eras, one after the other
		fits(t, c.call(request("5", "tools/list", "")), `{"id":5,"result":{"resultType":null}}`)
		fits(t, c.call(modernRequest("6", "tools/list", "", "{}")), `{"id":6,"result":{"resultType":"complete"}}`)
		// What initialize declared counts for nothing here.
		fits(t, c.call(modernRequest("7", "tools/call", `"name":"ask"`, "{}")), `{"id":7,"error":{"code":-32021}}`)
	}
	c.alive()
}

func TestServerHasTheMethodsOfTheRevision(t *testing.T) {
	shows(t, "ping.removed", "logging.set-level.removed", "resources.subscribe.removed", "errors.method-not-found", "lifecycle.op.version")
	leakCheck(t)
	s := testServer(nil)
	for _, rev := range revisions {
		c, _ := dialServer(t, s)
		ask := func(method string) string { return c.call(modernRequest("1", method, "", "{}")) }
		if !rev.modern {
			c.initialize(rev.version, "{}")
			ask = func(method string) string { return c.call(request("1", method, "")) }
		}
		for method, modern := range map[string]bool{"ping": false, "logging/setLevel": false, "resources/subscribe": false, "resources/unsubscribe": false, "server/discover": true} {
			if got := ask(method); (strings.Contains(got, "-32601")) != (modern != rev.modern) {
				t.Errorf("%s at %s: %s", method, rev.version, got)
			}
		}
		if !rev.modern {
			fits(t, ask("subscriptions/listen"), `{"error":{"code":-32601}}`)
		}
		for _, method := range []string{"completion/complete", "tasks/get", "tasks/list", "roots/list", "sampling/createMessage", "notifications/initialized", "nothing"} {
			fits(t, ask(method), `{"id":1,"error":{"code":-32601}}`)
		}
	}
	modernOnly := []string{Version20260728}
	c, _ := dialServer(t, testServer(&ServerOptions{Versions: modernOnly}))
	fits(t, c.call(modernRequest("1", "initialize", `"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"0"}`, "{}")), `{"id":1,"result":null,"error":{"data":{"supported":["2026-07-28"]}}}`)
}

// Results have the words of their revision and no others.
func TestServerResultsSpeakTheirRevision(t *testing.T) {
	shows(t, "base.resulttype.present", "base.resulttype.value", "base.resulttype.closed-set", "meta.result.server-info", "base.schema.required-fields", "tools.list.respond", "resources.list.respond", "prompts.list.respond", "tools.list.deterministic")
	leakCheck(t)
	s := testServer(&ServerOptions{Complete: func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) {
		return &CompleteResult{}, nil
	}})
	s.Handle("x/custom", func(context.Context, *Request) (any, error) { return map[string]int{"n": 1}, nil })
	calls := []struct {
		method, params string
		cached         bool
	}{
		{"tools/list", "", true}, {"prompts/list", "", true}, {"resources/list", "", true}, {"resources/templates/list", "", true}, {"resources/read", `"uri":"test://a"`, true},
		{"tools/call", `"name":"add","arguments":{"a":1,"b":1}`, false}, {"tools/call", `"name":"fail"`, false}, {"prompts/get", `"name":"greet","arguments":{"name":"x"}`, false},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""}`, false}, {"x/custom", "", false},
	}
	for _, rev := range revisions {
		c, _ := dialServer(t, s)
		if !rev.modern {
			c.initialize(rev.version, "{}")
		}
		for _, call := range calls {
			if !rev.modern {
				fits(t, c.call(request("1", call.method, call.params)), `{"id":1,"error":null,"result":{"resultType":null,"ttlMs":null,"cacheScope":null,"_meta":null}}`)
				continue
			}
			want := `"ttlMs":null,"cacheScope":null`
			if call.cached {
				want = `"ttlMs":0,"cacheScope":"private"`
			}
			fits(t, c.call(modernRequest("1", call.method, call.params, "{}")), `{"id":1,"error":null,"result":{"resultType":"complete",`+want+`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`)
		}
	}
}

func TestServerSaysWhoseFaultItIs(t *testing.T) {
	shows(t, "tools.error.unknown", "tools.error.execution", "tools.error.invalid-args", "tools.sec.validate-input", "prompts.error.name", "prompts.error.args", "prompts.error.internal", "resources.error.not-found", "resources.error.no-empty", "resources.error.internal", "errors.internal", "errors.retired.32002", "base.error.message-concise", "completion.error.internal", "completion.error.unsupported")
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "protocol", func(context.Context, *Request) (*CallToolResult, error) {
		return nil, fmt.Errorf("wrapped: %w", &Error{Code: -31000, Message: "mine", Data: json.RawMessage(`{"k":[1]}`)})
	})
	rawTool(s, "zero", func(context.Context, *Request) (*CallToolResult, error) { return nil, &Error{Message: "no code"} })
	rawTool(s, "nil", func(context.Context, *Request) (*CallToolResult, error) { return nil, (*Error)(nil) })
	rawTool(s, "nothing", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	rawTool(s, "badjson", func(context.Context, *Request) (*CallToolResult, error) {
		return &CallToolResult{StructuredContent: json.RawMessage(`{oops`)}, nil
	})
	s.AddTool(Tool{Name: "liar", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object","required":["n"]}`)},
		func(context.Context, *Request) (*CallToolResult, error) {
			return &CallToolResult{StructuredContent: json.RawMessage(`{}`)}, nil
		})
	AddTool(s, Tool{Name: "deep"}, func(context.Context, *Request, struct {
		List []struct {
			N int `json:"n"`
		} `json:"list"`
	}) (string, error) {
		return "ran", nil
	})
	for _, name := range []string{"err", "panic", "nil"} {
		fail := func() error {
			if name == "panic" {
				panic("secret")
			}
			if name == "nil" {
				return nil
			}
			return errors.New("secret")
		}
		s.AddPrompt(Prompt{Name: name}, func(context.Context, *Request) (*GetPromptResult, error) { return nil, fail() })
		s.AddResource(Resource{URI: "x:" + name, Name: name}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, fail() })
	}
	s.Handle("x/marshal", func(context.Context, *Request) (any, error) { return struct{ json.Marshaler }{}, nil })
	s.Handle("x/array", func(context.Context, *Request) (any, error) { return []int{1}, nil })
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	for _, call := range []struct{ method, params, want string }{
		{"tools/call", `"name":"no"`, `{"error":{"code":-32602,"message":"unknown tool: no"}}`},
		{"tools/call", `"name":"add","arguments":{"a":"x","b":2}`, `{"result":{"isError":true}}`},
		{"tools/call", `"name":"fail"`, `{"result":{"isError":true,"content":[{"type":"text","text":"it failed"}]}}`},
		{"tools/call", `"name":"panic"`, `{"result":null,"error":{"code":-32603,"message":"internal error","data":null}}`},
		{"tools/call", `"name":"protocol"`, `{"error":{"code":-31000,"message":"mine","data":{"k":[1]}}}`},
		{"tools/call", `"name":"zero"`, `{"error":{"code":-32603}}`},
		{"tools/call", `"name":"nil"`, `{"error":{"code":-32603,"message":"internal error"}}`},
		{"tools/call", `"name":"nothing"`, `{"result":{"content":[],"isError":null}}`},
		{"tools/call", `"name":"badjson"`, `{"error":{"code":-32603,"message":"internal error"}}`},
		{"tools/call", `"name":"liar"`, `{"error":{"code":-32603}}`},
		{"prompts/get", `"name":"no"`, `{"error":{"code":-32602}}`},
		{"prompts/get", `"name":"greet"`, `{"error":{"code":-32602}}`},
		{"prompts/get", `"name":"err"`, `{"error":{"code":-32603,"message":"internal error"}}`},
		{"prompts/get", `"name":"panic"`, `{"error":{"code":-32603,"message":"internal error"}}`},
		{"prompts/get", `"name":"nil"`, `{"result":{"messages":[]}}`},
		{"resources/read", `"uri":"x:no"`, `{"error":{"code":-32602,"data":{"uri":"x:no"}}}`},
		{"resources/read", `"uri":"x:err"`, `{"error":{"code":-32603,"message":"internal error"}}`},
		{"resources/read", `"uri":"x:panic"`, `{"error":{"code":-32603,"message":"internal error"}}`},
		{"resources/read", `"uri":"x:nil"`, `{"error":{"code":-32602,"data":{"uri":"x:nil"}}}`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""}`, `{"error":{"code":-32601}}`},
		{"x/marshal", "", `{"error":{"code":-32603,"message":"internal error"}}`},
		{"x/array", "", `{"error":{"code":-32603,"message":"internal error"}}`},
	} {
		fits(t, c.call(request("1", call.method, call.params)), call.want)
		fits(t, c.call(modernRequest("1", call.method, call.params, "{}")), call.want)
	}
	if got := c.call(request("1", "tools/call", `"name":"deep","arguments":{"list":[{"n":1},{"n":"x"}]}`)); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "/list/1/n") {
		t.Errorf("the path is not in the text: %s", got)
	}
}

// A cancelled request loses its context, says why, and is not answered.
func TestServerCancels(t *testing.T) {
	shows(t, "cancel.receiver.stop", "cancel.receiver.no-response", "cancel.receiver.free", "cancel.invalid", "cancel.race", "cancel.initialize", "base.notif.no-response")
	leakCheck(t)
	s := emptyServer(nil)
	began, causes := make(chan struct{}), make(chan error, 1)
	rawTool(s, "wait", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		began <- struct{}{}
		<-ctx.Done()
		req.Progress(context.Background(), ProgressParams{Progress: 1}) // too late
		req.Log().Error("too late")
		causes <- context.Cause(ctx)
		return textResult("too late"), nil
	})
	for _, modern := range []bool{false, true} {
		c, ss := dialServer(t, s)
		frame := request
		if modern {
			frame = func(id, method, params string) string { return modernRequest(id, method, params, "{}") }
		} else {
			c.initialize("2025-11-25", "{}")
		}
		for _, id := range []string{`0`, `""`, `"a b"`, `9007199254740993`, `0`} { // an id may come again
			c.send(frame(id, "tools/call", `"name":"wait"`))
			<-began
			for _, other := range []string{`{"requestId":"0"}`, `{"requestId":12345}`, `{"requestId":null}`, `{"requestId":1.5}`, `{"requestId":[0]}`, `{}`, `[]`, `null`} {
				c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + other + `}`)
			}
			c.alive()
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"too slow"}}`)
			if cause := <-causes; !errors.Is(cause, context.Canceled) || !strings.Contains(cause.Error(), "too slow") {
				t.Errorf("the cause is %v", cause)
			}
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			c.alive()
		}
		ss.Close()
		if frame, err := c.conn.Read(context.Background()); err == nil {
			t.Errorf("a cancelled request was answered: %s", frame)
		}
	}
}

// initialize cannot be cancelled, however soon.
func TestServerDoesNotCancelInitialize(t *testing.T) {
	shows(t, "cancel.receiver.ignore")
	leakCheck(t)
	s := emptyServer(nil)
	began, release := make(chan struct{}), make(chan struct{})
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == methodInitialize {
				close(began)
				<-release
			}
			return next(ctx, req)
		}
	})
	c, ss := dialServer(t, s)
	c.send(initializeFrame("1", "2025-11-25", "{}"))
	<-began
	note := &Request{Method: notifyCancelled, Params: json.RawMessage(`{"requestId":1}`), rev: rev20251125}
	ss.core.cancelled(note)
	close(release)
	fits(t, c.next(), `{"id":1,"result":{"protocolVersion":"2025-11-25"}}`)
}

// A cancel that overtakes its handler still says why.
func TestCancelBeforeTheHandlerStarts(t *testing.T) {
	shows(t, "cancel.race")
	leakCheck(t)
	s := emptyServer(nil)
	ss := s.newSession(context.Background())
	defer ss.Close()
	var cause error
	rawTool(s, "t", func(ctx context.Context, _ *Request) (*CallToolResult, error) {
		cause = context.Cause(ctx)
		return nil, nil
	})
	out := new(frames)
	req := ss.core.deliver([]byte(modernRequest("1", "tools/call", `"name":"t"`, "{}")), out)
	ss.core.deliver([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"why not"}}`), out)
	ss.core.serve(req)
	if cause == nil || !strings.Contains(cause.Error(), "why not") {
		t.Errorf("the cause is %v", cause)
	}
	if out.String() != "" {
		t.Errorf("sent %s", out)
	}
}

// frames is a stream that keeps what is sent.
type frames struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (f *frames) room(context.Context) error { return nil }

func (f *frames) put(frame []byte) error { f.answer(frame, 0); return nil }

func (f *frames) answer(frame []byte, _ int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent.Write(frame)
}

func (f *frames) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent.String()
}

func TestServerRefusesAnIDThatIsInUse(t *testing.T) {
	shows(t, "errors.invalid-request", "cancel.receiver.stop")
	leakCheck(t)
	s := testServer(nil)
	began, release := make(chan struct{}), make(chan struct{})
	rawTool(s, "slow", func(ctx context.Context, _ *Request) (*CallToolResult, error) {
		began <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return textResult("first"), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	const add = `"name":"add","arguments":{"a":1,"b":1}`
	c.send(request("7", "tools/call", `"name":"slow"`))
	<-began
	fits(t, c.call(request("7", "tools/call", add)), `{"id":7,"error":{"code":-32600}}`)
	release <- struct{}{}
	fits(t, c.next(), `{"id":7,"result":{"content":[{"text":"first"}]}}`)
	fits(t, c.call(request("7", "tools/call", add)), `{"id":7,"result":{"structuredContent":{"sum":2}}}`)
	c.send(request("7", "tools/call", `"name":"slow"`))
	<-began
	fits(t, c.call(request("7", "tools/call", add)), `{"id":7,"error":{"code":-32600}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`) // cancels the first
	c.alive()
}

func TestServerSendsProgress(t *testing.T) {
	shows(t, "progress.token.type", "progress.increasing", "progress.stop", "progress.only-active", "progress.optional", "progress.float", "progress.message", "patterns.request-scoped")
	leakCheck(t)
	s := emptyServer(nil)
	late := make(chan *Request, 1)
	zero := 0.0
	rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		for _, p := range []float64{0, 0.25, 0.5, 0.5, 0.4, -1, 0.75} {
			if err := req.Progress(ctx, ProgressParams{Progress: p, Total: &zero, Message: "m"}); err != nil {
				t.Error(err)
			}
		}
		late <- req
		return nil, nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	for _, token := range []string{`0`, `""`, `"t"`, `9007199254740993`, `1`} {
		c.send(request("1", "tools/call", `"name":"t","_meta":{"a":1,"progressToken":`+token+`}`))
		for _, p := range []string{"0", "0.25", "0.5", "0.75"} {
			fits(t, c.next(), `{"id":null,"method":"notifications/progress","params":{"progressToken":`+token+`,"progress":`+p+`,"total":0,"message":"m"}}`)
		}
		fits(t, c.next(), `{"id":1,"result":{}}`)
		if err := (<-late).Progress(context.Background(), ProgressParams{Progress: 2}); err != nil {
			t.Error(err)
		}
		c.alive()
	}
	fits(t, c.call(request("1", "tools/call", `"name":"t","_meta":{"a":1}`)), `{"id":1,"result":{}}`)
	<-late
	fits(t, c.call(request("1", "tools/call", `"name":"t"`)), `{"id":1,"result":{}}`)
	<-late
	c.send(modernRequest("2", "tools/call", `"name":"t"`, `{},"progressToken":"m"`))
	for _, p := range []string{"0", "0.25", "0.5", "0.75"} {
		fits(t, c.next(), `{"method":"notifications/progress","params":{"progressToken":"m","progress":`+p+`}}`)
	}
	fits(t, c.next(), `{"id":2,"result":{}}`)
	<-late
}

func TestServerLogsWhatWasAskedFor(t *testing.T) {
	shows(t, "logging.opt-in", "logging.threshold", "logging.stream", "logging.set-level", "logging.levels", "logging.caps", "logging.default", "logging.error.level-modern")
	leakCheck(t)
	s := emptyServer(nil)
	rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		for level := slog.LevelDebug; level <= slog.LevelError+12; level += 2 {
			req.Log().With("a", 1).WithGroup("g").Log(ctx, level, "<m>", "b", int64(9007199254740993))
		}
		return nil, nil
	})
	sent := func(c *wireClient, frame string) (levels []string) {
		c.send(frame)
		for {
			got := c.next()
			if memberOf(t, got, "id") != "" {
				return levels
			}
			fits(t, got, `{"method":"notifications/message","params":{"data":{"msg":"<m>","a":1,"g":{"b":9007199254740993},"time":null,"level":null}}}`)
			if level := memberOf(t, got, "params", "level"); len(levels) == 0 || levels[len(levels)-1] != level {
				levels = append(levels, level)
			}
		}
	}
	order := []string{`"debug"`, `"info"`, `"notice"`, `"warning"`, `"error"`, `"critical"`, `"alert"`, `"emergency"`}
	check := func(got, want []string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("levels %v, want %v", got, want)
		}
	}
	c, _ := dialServer(t, s)
	fits(t, c.initialize("2025-11-25", "{}"), `{"result":{"capabilities":{"logging":{}}}}`)
	const params = `"name":"t"`
	check(sent(c, request("1", "tools/call", params)), order[1:])
	check(sent(c, modernRequest("1", "tools/call", params, "{}")), nil)
	for i, level := range order {
		fits(t, c.call(request("2", "logging/setLevel", `"level":`+level)), `{"id":2,"result":{}}`)
		check(sent(c, request("1", "tools/call", params)), order[i:])
		// What the session asked for says nothing about a modern request.
		check(sent(c, modernRequest("1", "tools/call", params, "{}")), nil)
		check(sent(c, modernRequest("1", "tools/call", params, `{},"io.modelcontextprotocol/logLevel":`+level)), order[i:])
	}
	fits(t, c.call(modernRequest("1", "tools/call", params, `{},"io.modelcontextprotocol/logLevel":"loud"`)), `{"error":{"code":-32602}}`)
}

func TestServerBoundsCompletions(t *testing.T) {
	shows(t, "completion.max", "completion.caps", "completion.validate")
	leakCheck(t)
	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprint(i))
	}
	s := testServer(&ServerOptions{Complete: func(_ context.Context, _ *Request, p *CompleteParams) (*CompleteResult, error) {
		switch p.Argument.Value {
		case "many":
			return &CompleteResult{Completion: Completion{Values: many}}, nil
		case "counted":
			total := int64(10000)
			return &CompleteResult{Completion: Completion{Values: many, Total: &total}}, nil
		case "100":
			return &CompleteResult{Completion: Completion{Values: many[:100]}}, nil
		case "nil":
			return nil, nil
		case "context":
			return &CompleteResult{Completion: Completion{Values: []string{p.Context.Arguments["x"]}}}, nil
		case "fail":
			return nil, errors.New("secret")
		}
		return &CompleteResult{}, nil
	}})
	c, _ := dialServer(t, s)
	fits(t, c.initialize("2025-11-25", "{}"), `{"result":{"capabilities":{"completions":{}}}}`)
	complete := func(value, more string) string {
		return c.call(request("1", "completion/complete", `"ref":{"type":"ref/resource","uri":"test://users/{id}"},"argument":{"name":"id","value":"`+value+`"}`+more))
	}
	fits(t, complete("many", ""), `{"result":{"completion":{"total":250,"hasMore":true}}}`)
	fits(t, complete("counted", ""), `{"result":{"completion":{"total":10000,"hasMore":true}}}`)
	var values []string
	if json.Unmarshal([]byte(memberOf(t, complete("many", ""), "result", "completion", "values")), &values); len(values) != 100 || values[99] != "99" {
		t.Errorf("%d values", len(values))
	}
	fits(t, complete("100", ""), `{"result":{"completion":{"total":null,"hasMore":null}}}`)
	fits(t, complete("", ""), `{"result":{"completion":{"values":[]}}}`)
	fits(t, complete("nil", ""), `{"result":{"completion":{"values":[]}}}`)
	fits(t, complete("context", `,"context":{"arguments":{"x":"y"}}`), `{"result":{"completion":{"values":["y"]}}}`)
	fits(t, complete("context", `,"context":{"arguments":{"x":7}}`), `{"error":{"code":-32602}}`)
	fits(t, complete("fail", ""), `{"error":{"code":-32603,"message":"internal error"}}`)
}

func TestServerPages(t *testing.T) {
	shows(t, "pagination.operations", "pagination.stable", "pagination.invalid", "pagination.empty-cursor-server", "tools.list.deterministic", "tools.caps", "prompts.caps", "resources.caps")
	leakCheck(t)
	s := emptyServer(&ServerOptions{PageSize: 3})
	for i := range 7 {
		rawTool(s, fmt.Sprintf("t%d", i), func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	}
	c, _ := dialServer(t, s)
	// Not told of changes, since it does not say that it is initialized.
	fits(t, c.call(initializeFrame("0", "2025-11-25", "{}")), `{"result":{"capabilities":{"tools":{"listChanged":true},"prompts":null,"resources":null,"completions":null}}}`)
	page := func(cursor string) (names, next string) {
		if cursor != "" {
			cursor = `"cursor":` + cursor
		}
		got := c.call(request("1", "tools/list", cursor))
		var tools []Tool
		if err := json.Unmarshal([]byte(memberOf(t, got, "result", "tools")), &tools); err != nil {
			t.Fatal(err, got)
		}
		for _, tool := range tools {
			names += tool.Name
		}
		return names, memberOf(t, got, "result", "nextCursor")
	}
	expect := func(cursor, want string) (next string) {
		t.Helper()
		names, next := page(cursor)
		if names != want {
			t.Errorf("after %s: %s, want %s", cursor, names, want)
		}
		return next
	}
	first := expect("", "t0t1t2")
	second := expect(first, "t3t4t5")
	if last := expect(second, "t6"); last != "" {
		t.Errorf("cursor %s at the end", last)
	}
	s.RemoveTools("t2", "t3", "t0") // the list changes meanwhile: nothing is missed, nothing comes twice
	rawTool(s, "t7", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	rawTool(s, "t5", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil }) // replaced in place
	second = expect(first, "t4t5t6")
	expect(second, "t7")
	for _, cursor := range []string{`""`, `"x"`, `"0"`, `"-1"`, `"1000"`, `"1 "`, `"+1"`, `"01"`, `1`} {
		fits(t, c.call(request("1", "tools/list", `"cursor":`+cursor)), `{"error":{"code":-32602}}`)
	}
}

// What a server declared once it keeps answering, be the list empty.
func TestServerListsAreEmptyNotNull(t *testing.T) {
	shows(t, "tools.list.respond", "prompts.list.respond", "resources.list.respond", "errors.method-not-found", "subs.ack.subset", "subs.ack.empty", "tools.list.no-variance", "prompts.list.no-variance", "resources.list.no-variance")
	leakCheck(t)
	lists := map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}
	had := testServer(nil)
	had.RemoveTools("add", "ask", "count", "wait", "fail", "panic")
	had.RemovePrompts("greet")
	had.RemoveResources("test://a", "test://users/{id}")
	declared := emptyServer(&ServerOptions{Capabilities: &ServerCapabilities{Tools: &ListCapability{}, Prompts: &ListCapability{}, Resources: &ResourcesCapability{}}})
	for _, s := range []*Server{had, declared} {
		c, _ := dialServer(t, s)
		c.initialize("2025-11-25", "{}")
		for method, name := range lists {
			fits(t, c.call(request("1", method, "")), `{"result":{"`+name+`":[],"nextCursor":null}}`)
			fits(t, c.call(modernRequest("1", method, "", "{}")), `{"result":{"`+name+`":[],"nextCursor":null}}`)
		}
	}
	c, _ := dialServer(t, emptyServer(nil))
	fits(t, c.initialize("2025-11-25", "{}"), `{"result":{"capabilities":{"tools":null,"prompts":null,"resources":null}}}`)
	for method := range lists {
		fits(t, c.call(request("1", method, "")), `{"error":{"code":-32601}}`)
	}
	fits(t, c.call(listenFrame("5", `{"toolsListChanged":true,"resourceSubscriptions":["test://a"]}`)), `{"id":null,"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":null,"resourceSubscriptions":null},"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`)
}

func TestServerTakesBatches(t *testing.T) {
	shows(t, "batch.receive", "batch.send", "base.batch.rejected")
	leakCheck(t)
	s := testServer(nil)
	for _, rev := range revisions {
		c, _ := dialServer(t, s)
		if !rev.modern {
			c.initialize(rev.version, "{}")
		}
		if !rev.batches {
			fits(t, c.call(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), `{"id":null,"error":{"code":-32600}}`)
			c.alive()
			continue
		}
		c.send(`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}},{"jsonrpc":"2.0","id":77,"result":{}}]`, `[{"jsonrpc":"2.0","method":"no/such"}]`)
		c.alive() // no answer to those
		fits(t, c.call(`[]`), `{"id":null,"error":{"code":-32600}}`)
		fits(t, c.call(`[oops]`), `{"id":null,"error":{"code":-32700}}`)
		got := c.call(`[1,[],{"jsonrpc":"2.0","id":1,"method":"ping"},[{"jsonrpc":"2.0","id":2,"method":"ping"}],{"jsonrpc":"2.0","method":"notifications/x"},` +
			`{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"count","arguments":{"to":0}}},{"jsonrpc":"2.0","id":3,"method":"no/such"},` +
			initializeFrame("4", "2025-03-26", "{}") + `,{"jsonrpc":"2.0","id":5}]`)
		answers, _ := parsed(t, got).([]any)
		count := map[string]int{}
		for _, a := range answers {
			object, _ := a.(map[string]any)
			e, _ := object["error"].(map[string]any)
			count[fmt.Sprintf("%T %v %v", object["id"], object["id"], e["code"])]++
		}
		want := map[string]int{"<nil> <nil> -32600": 3, "json.Number 1 <nil>": 1, "string 1 <nil>": 1, "json.Number 3 -32601": 1, "json.Number 4 -32600": 1, "json.Number 5 -32600": 1}
		if fmt.Sprint(count) != fmt.Sprint(want) {
			t.Errorf("answers %v\nwant    %v\n%s", count, want, got)
		}
		c.send(`[{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"wait"}},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}]`)
		c.alive()
	}
}

// What goes through a server keeps its digits and its characters.
func TestServerKeepsValuesAsTheyAre(t *testing.T) {
	shows(t, "tools.structured.object", "tools.structured.text", "tools.output.conform", "resources.sec.binary", "prompts.embedded")
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "raw", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return &CallToolResult{StructuredContent: req.Arguments, Meta: req.Meta()}, nil
	})
	s.AddResource(Resource{URI: "x:b", Name: "b"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Blob: []byte{0xfb, 0xff, 0}}, {Blob: []byte{}}, {}}}, nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	fits(t, c.call(request("1", "tools/call", `"name":"add","arguments":{"a":9007199254740993,"b":0}`)), `{"result":{"structuredContent":{"sum":9007199254740993},"content":[{"type":"text","text":"{\"sum\":9007199254740993}"}]}}`)
	fits(t, c.call(request("1", "tools/call", `"name":"add","arguments":{"a":9223372036854775807,"b":-9223372036854775808}`)), `{"result":{"structuredContent":{"sum":-1}}}`)
	fits(t, c.call(request("1", "tools/call", `"name":"add","arguments":{"a":9223372036854775808,"b":0}`)), `{"result":{"isError":true}}`)
	const odd = `{"n":1e2,"f":1.0,"big":123456789012345678901234567890,"html":"<a href='&'>é","esc":"\u00e9","null":null,"e":{},"l":[]}`
	got := c.call(request("1", "tools/call", `"name":"raw","arguments":`+odd+`,"_meta":{"x/y":1.50}`))
	if !strings.Contains(got, `"structuredContent":`+odd) || !strings.Contains(got, `"x/y":1.50`) {
		t.Errorf("got %s", got)
	}
	got = c.call(request("1", "tools/call", "\"name\":\"raw\",\"arguments\":{\"lines\":\"\u2028\u0085\", \"x\" : [1,\n2]}"))
	if strings.ContainsAny(got, "\r\n\u2028") || memberOf(t, got, "result", "structuredContent", "x") != "[1,2]" {
		t.Errorf("got %q", got)
	}
	fits(t, c.call(request("1", "resources/read", `"uri":"x:b"`)), `{"result":{"contents":[{"uri":"x:b","blob":"+/8A","text":null},{"blob":"","text":null},{"text":"","blob":null}]}}`)
	for _, text := range []string{"<>&", "😀\u0000", "\ufeff", "a\u2029b"} {
		quoted, _ := json.Marshal(text)
		fits(t, c.call(request("1", "prompts/get", `"name":"greet","arguments":{"name":`+string(quoted)+`}`)), `{"result":{"messages":[{"role":"user","content":{"type":"text","text":`+string(quoted[:1])+`hi `+string(quoted[1:])+`}}]}}`)
	}
}

const allCapabilities = `{"elicitation":{},"roots":{},"sampling":{}}`

// A legacy client is asked on the connection while the request waits, and
// however many wait, answers find them.
func TestServerAsksLegacyClients(t *testing.T) {
	shows(t, "lifecycle.op.capabilities", "lifecycle.op.capabilities-old", "lifecycle.op.version-old", "base.notif.no-id")
	leakCheck(t)
	const n = 40
	c, _ := dialServer(t, testServer(nil))
	c.initialize("2025-06-18", allCapabilities)
	for i := range n {
		c.send(request(fmt.Sprintf(`"%d"`, i), "tools/call", `"name":"ask"`))
	}
	steps := []struct{ method, params, result string }{
		{"elicitation/create", `{"mode":null,"message":"Name?","requestedSchema":{"required":["name"]}}`, `{"action":"accept","content":{"name":"<A&B>"}}`},
		{"roots/list", `{}`, `{"roots":[{"uri":"file:///r"}]}`},
		{"sampling/createMessage", `{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`},
	}
	seen := map[string]bool{}
	for _, step := range steps {
		var ids []string
		for range n { // all wait before one is answered
			got := c.next()
			fits(t, got, `{"method":"`+step.method+`","params":`+step.params+`}`)
			id := memberOf(t, got, "id")
			if seen[id] {
				t.Errorf("the id %s comes again", id)
			}
			seen[id] = true
			ids = append(ids, id)
		}
		for i := range ids {
			c.send(`{"jsonrpc":"2.0","id":` + ids[n-1-i] + `,"result":` + step.result + `}`)
		}
	}
	for range n {
		fits(t, c.next(), `{"result":{"isError":null,"content":[{"text":"accept {\"name\":\"<A&B>\"} file:///r sampled"}]}}`)
	}
}

func TestLegacyAnswersThatDisappoint(t *testing.T) {
	shows(t, "tools.error.execution", "lifecycle.op.capabilities")
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "rejected", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		_, err := req.Roots(ctx, "r")
		return textResult("%v", errors.Is(err, &Error{Code: CodeUserRejected})), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-06-18", allCapabilities)
	for _, answer := range []string{`"result":{"action":"maybe"}`, `"result":{}`, `"result":{"action":7}`, `"result":{"action":"accept","content":{"name":7}}`, `"result":{"action":"accept"}`,
		`"result":{"action":"accept","content":[]}`, `"result":[]`, `"error":{"code":-32601,"message":"what?"}`, `"error":{"code":-1,"message":"no"}`, `"error":7`} {
		got := c.call(request("1", "tools/call", `"name":"ask"`))
		c.send(`{"jsonrpc":"2.0","id":` + memberOf(t, got, "id") + `,` + answer + `}`)
		fits(t, c.next(), `{"id":1,"error":null,"result":{"isError":true}}`)
	}
	got := c.call(request("1", "tools/call", `"name":"rejected"`))
	c.send(`{"jsonrpc":"2.0","id":` + memberOf(t, got, "id") + `,"error":{"code":-1,"message":"no"}}`)
	fits(t, c.next(), `{"result":{"content":[{"text":"true"}]}}`)
	for version, capabilities := range map[string]string{"2025-11-25": `{"elicitation":{"url":{}}}`, "2025-06-18": `{}`, "2024-11-05": allCapabilities} {
		c, _ := dialServer(t, s)
		c.initialize(version, capabilities)
		fits(t, c.call(request("1", "tools/call", `"name":"ask"`)), `{"id":1,"result":{"isError":true}}`) // nothing was asked
	}
	// A capability of a later revision counts for nothing.
	rawTool(s, "url", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		_, err := req.Elicit(ctx, "u", &ElicitParams{Mode: "url", Message: "m", URL: "https://example.com"})
		return nil, err
	})
	c, _ = dialServer(t, s)
	c.initialize("2025-06-18", `{"elicitation":{"form":{},"url":{}}}`)
	fits(t, c.call(request("1", "tools/call", `"name":"url"`)), `{"id":1,"result":{"isError":true}}`)
}

// round is one round of a modern request: what was asked, and the state.
func (c *wireClient) round(frame, key, wantRequest string) (state string) {
	c.t.Helper()
	got := c.call(frame)
	fits(c.t, got, `{"method":null,"result":{"resultType":"input_required","content":null,"ttlMs":null,"cacheScope":null,"inputRequests":{"`+key+`":`+wantRequest+`}}}`)
	if state = memberOf(c.t, got, "result", "requestState"); !strings.HasPrefix(state, `"`) {
		c.t.Fatalf("no state: %s", got)
	}
	return state
}

func askFrame(params, capabilities string) string {
	return modernRequest("1", "tools/call", `"name":"ask"`+params, capabilities)
}

func TestServerAsksModernClientsInRounds(t *testing.T) {
	shows(t, "mrtr.at-least-one", "mrtr.values", "mrtr.keys.unique", "mrtr.repeat", "mrtr.methods.allowed", "mrtr.server.rerequest", "mrtr.server.extra", "mrtr.no-assumption", "patterns.no-server-requests", "base.resulttype.value", "stateless.no-affinity", "stateless.explicit-handle")
	leakCheck(t)
	keys := [][]byte{[]byte("0123456789abcdef")}
	one := testServer(&ServerOptions{StateKeys: keys})
	two := testServer(&ServerOptions{StateKeys: append([][]byte{[]byte("a newer key, to seal")}, keys...)})
	a, _ := dialServer(t, one)
	b, _ := dialServer(t, two) // any replica that has the key will do
	const form = `{"jsonrpc":null,"id":null,"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`
	const roots = `{"jsonrpc":null,"id":null,"method":"roots/list"}`
	const sample = `{"jsonrpc":null,"id":null,"method":"sampling/createMessage","params":{"maxTokens":5}}`
	state := a.round(askFrame("", allCapabilities), "name", form)
	a.round(askFrame(`,"requestState":`+state, allCapabilities), "name", form) // it asks again for what is missing
	a.round(askFrame(`,"requestState":`+state+`,"inputResponses":{"other":{"roots":[]},"Name":7}`, allCapabilities), "name", form)
	state = b.round(askFrame(`,"requestState":`+state+`,"inputResponses":{"name":{"action":"accept","content":{"name":"<A>"}}}`, allCapabilities), "roots", roots)
	state = b.round(askFrame(`,"inputResponses":{"roots":{"roots":[{"uri":"file:///r"}]}},"requestState":`+state, allCapabilities), "sample", sample)
	const sampled = `,"inputResponses":{"sample":{"role":"assistant","model":"m","content":{"type":"text","text":"ok"}}},"requestState":`
	fits(t, b.call(askFrame(sampled+state, allCapabilities)), `{"result":{"resultType":"complete","requestState":null,"content":[{"text":"accept {\"name\":\"<A>\"} file:///r ok"}]}}`)
	fits(t, a.call(askFrame(sampled+state, allCapabilities)), `{"error":{"code":-32602}}`) // sealed with a key that it has not

	ask := func(ctx context.Context, req *Request) (string, error) {
		r, err := req.Roots(ctx, "k")
		if err != nil {
			return "", err
		}
		return r[0].URI, nil
	}
	one.AddResource(Resource{URI: "x:ask", Name: "ask"}, func(ctx context.Context, req *Request) (*ReadResourceResult, error) {
		text, err := ask(ctx, req)
		return &ReadResourceResult{Contents: []ResourceContents{{Text: text}}}, err
	})
	one.AddPrompt(Prompt{Name: "ask"}, func(ctx context.Context, req *Request) (*GetPromptResult, error) {
		text, err := ask(ctx, req)
		return &GetPromptResult{Description: text}, err
	})
	for method, params := range map[string]string{"resources/read": `"uri":"x:ask"`, "prompts/get": `"name":"ask"`} {
		state := a.round(modernRequest("1", method, params, allCapabilities), "k", roots)
		got := a.call(modernRequest("2", method, params+`,"inputResponses":{"k":{"roots":[{"uri":"file:///q"}]}},"requestState":`+state, allCapabilities))
		if !strings.Contains(got, "file:///q") || !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("%s: %s", method, got)
		}
	}
	a.alive()
}

func TestServerRefusesStateThatIsNotForThis(t *testing.T) {
	shows(t, "mrtr.state.integrity", "mrtr.state.reject", "mrtr.state.request", "mrtr.state.ttl", "mrtr.state.principal", "mrtr.state.untrusted", "mrtr.server.validate", "mrtr.server.protocol-error")
	leakCheck(t)
	s := testServer(nil)
	ask, _ := s.tools.get("ask")
	handler := func(ctx context.Context, req *Request) (*CallToolResult, error) {
		result, err := ask.handler(ctx, req)
		return result.whole(), err
	}
	s.AddTool(Tool{Name: "ask2", InputSchema: json.RawMessage(`{"type":"object"}`)}, handler)
	s.AddTool(Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, handler)
	s.AddPrompt(Prompt{Name: "ask"}, func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil })
	c, _ := dialServer(t, s)
	call := func(name, arguments, rest string) string {
		return modernRequest("1", "tools/call", `"name":"`+name+`","arguments":`+arguments+rest, allCapabilities)
	}
	const answer = `,"inputResponses":{"name":{"action":"accept","content":{"name":"A"}}},"requestState":`
	const form, roots = `{"method":"elicitation/create"}`, `{"method":"roots/list"}`
	state := c.round(call("ask", `{"a":1,"b":[2]}`, ""), "name", form)
	c.round(call("ask", "{ \"b\" : [2],\n\"a\":1}", answer+state), "roots", roots) // the same arguments
	c.round(strings.Replace(call("ask", `{"a":1,"b":[2]}`, answer+state), `"ask"`, `"\u0061sk"`, 1), "roots", roots)
	raw := state[1 : len(state)-1]
	flipped := []byte(raw)
	if flipped[20]++; flipped[20] > 'y' {
		flipped[20] = 'A'
	}
	sealed := func(expires int64, principal string) string {
		req := &Request{Method: methodToolsCall, Principal: principal, params: new(paramsView)}
		req.params.name, req.params.arguments = []byte(`"ask"`), []byte(`{"a":1,"b":[2]}`)
		plain, err := json.Marshal(&sealedState{Answers: InputResponses{}, Count: 1, Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		return `"` + s.seal.seal(plain, binding(req)) + `"`
	}
	now := time.Now().Unix()
	c.round(call("ask", `{"a":1,"b":[2]}`, answer+sealed(now+100, "")), "roots", roots)
	const same = `{"a":1,"b":[2]}`
	for name, frame := range map[string]string{
		"tampered":           call("ask", same, answer+`"`+string(flipped)+`"`),
		"cut":                call("ask", same, answer+`"`+raw[:len(raw)-2]+`"`),
		"longer":             call("ask", same, answer+`"`+raw+`AA"`),
		"empty":              call("ask", same, answer+`""`),
		"short":              call("ask", same, answer+`"AAAA"`),
		"not base64":         call("ask", same, answer+`"%%%"`),
		"number":             call("ask", same, answer+`7`),
		"null":               call("ask", same, answer+`null`),
		"other tool":         call("ask2", same, answer+state),
		"other method":       modernRequest("1", "prompts/get", `"name":"ask"`+answer+state, allCapabilities),
		"other arguments":    call("ask", `{"a":1,"b":[3]}`, answer+state),
		"fewer arguments":    call("ask", `{"a":1}`, answer+state),
		"a number's type":    call("ask", `{"a":"1","b":[2]}`, answer+state),
		"expired":            call("ask", same, answer+sealed(now-1, "")),
		"someone else's":     call("ask", same, answer+sealed(now+100, "eve")),
		"responses array":    call("ask", same, `,"inputResponses":[]`),
		"responses string":   call("ask", same, `,"inputResponses":"x"`),
		"responses null":     call("ask", same, `,"inputResponses":null`),
		"answer number":      call("ask", same, `,"inputResponses":{"name":7}`),
		"answer null":        call("ask", same, `,"inputResponses":{"name":null}`),
		"answer empty":       call("ask", same, `,"inputResponses":{"name":{}}`),
		"action unknown":     call("ask", same, `,"inputResponses":{"name":{"action":"maybe"}}`),
		"action in capitals": call("ask", same, `,"inputResponses":{"name":{"Action":"accept","content":{"name":"A"}}}`),
		"content unfit":      call("ask", same, `,"inputResponses":{"name":{"action":"accept","content":{"name":7}}}`),
		"content missing":    call("ask", same, `,"inputResponses":{"name":{"action":"accept"}}`),
		"wrapped":            call("ask", same, `,"inputResponses":{"name":{"result":{"action":"accept","content":{"name":"A"}}}}`),
		"answer twice":       call("ask", same, `,"inputResponses":{"name":{"action":"decline"},"name":{"action":"accept","content":{"name":"A"}}}`),
		"roots unfit":        call("ask", same, `,"inputResponses":{"name":{"action":"decline"},"roots":{"roots":{}}}`),
		"sample unfit":       call("ask", same, `,"inputResponses":{"name":{"action":"decline"},"roots":{"roots":[{"uri":"file:///"}]},"sample":{}}`),
	} {
		got := c.call(frame)
		if !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	c.alive()
}

func TestServerNeedsDeclaredCapabilities(t *testing.T) {
	shows(t, "mrtr.caps", "meta.caps.missing-error", "meta.caps.undeclared", "mrtr.methods.forbidden", "version.ext.mismatch", "errors.reserved.meaning", "errors.retired.32042", "stateless.no-prior-context")
	leakCheck(t)
	s := testServer(&ServerOptions{Complete: func(ctx context.Context, req *Request, _ *CompleteParams) (*CompleteResult, error) {
		_, err := req.Roots(ctx, "r")
		return nil, err
	}})
	rawTool(s, "url", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		_, err := req.Elicit(ctx, "u", &ElicitParams{Mode: "url", Message: "m", URL: "https://example.com"})
		return nil, err
	})
	rawTool(s, "direct", func(context.Context, *Request) (*CallToolResult, error) {
		return nil, &InputRequired{Requests: InputRequests{"r": {Method: methodRootsList}}}
	})
	rawTool(s, "require", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("fine"), req.RequireCapability(ClientCapabilities{Extensions: map[string]json.RawMessage{"a/b": json.RawMessage(`{}`)}})
	})
	s.Handle("x/ask", func(context.Context, *Request) (any, error) { return nil, &InputRequired{State: json.RawMessage(`1`)} })
	c, _ := dialServer(t, s)
	for _, call := range []struct{ tool, capabilities, required string }{
		{"ask", `{}`, `{"elicitation":{"form":{}}}`}, {"ask", `{"elicitation":{"url":{}},"roots":{},"sampling":{}}`, `{"elicitation":{"form":{}}}`},
		{"url", `{"elicitation":{}}`, `{"elicitation":{"url":{}}}`}, {"url", `{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`},
		{"direct", `{"elicitation":{}}`, `{"roots":{}}`}, {"require", `{}`, `{"extensions":{"a/b":{}}}`},
	} {
		got := c.call(modernRequest("1", "tools/call", `"name":"`+call.tool+`"`, call.capabilities))
		fits(t, got, `{"id":1,"result":null,"error":{"code":-32021,"data":{"requiredCapabilities":`+call.required+`}}}`)
	}
	c.round(modernRequest("1", "tools/call", `"name":"url"`, `{"elicitation":{"url":{}}}`), "u", `{"method":"elicitation/create","params":{"mode":"url","url":"https://example.com","elicitationId":null}}`)
	fits(t, c.call(modernRequest("1", "tools/call", `"name":"require"`, `{"extensions":{"a/b":{}}}`)), `{"result":{"content":[{"text":"fine"}]}}`)
	fits(t, c.call(modernRequest("1", "completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""}`, allCapabilities)), `{"error":{"code":-32603}}`)
	fits(t, c.call(modernRequest("1", "x/ask", "", allCapabilities)), `{"error":{"code":-32603}}`)
	c.alive()
}

func TestServerPassesOnAnswersAndKeepsState(t *testing.T) {
	shows(t, "mrtr.at-least-one", "mrtr.repeat")
	leakCheck(t)
	s := emptyServer(&ServerOptions{MaxRounds: 5})
	rawTool(s, "declined", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		a, err := req.Elicit(ctx, "k", &ElicitParams{Message: "m", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)})
		if err != nil {
			return nil, err
		}
		return textResult("%s %s", a.Action, a.Content), nil
	})
	rawTool(s, "endless", func(context.Context, *Request) (*CallToolResult, error) { return nil, &InputRequired{} })
	rawTool(s, "state", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		const kept = `{"n":9007199254740993,"t":"<&>","f":1.0}`
		if string(req.State()) == kept {
			return textResult("kept"), nil
		} else if req.State() != nil {
			return textResult("changed to %s", req.State()), nil
		}
		if err := req.SetState(json.RawMessage(kept)); err != nil {
			return nil, err
		}
		return nil, &InputRequired{}
	})
	frame := func(tool, rest string) string {
		return modernRequest("1", "tools/call", `"name":"`+tool+`"`+rest, allCapabilities)
	}
	c, _ := dialServer(t, s)
	for _, action := range []string{"decline", "cancel"} {
		fits(t, c.call(frame("declined", `,"inputResponses":{"k":{"action":"`+action+`"}}`)), `{"result":{"isError":null,"content":[{"text":"`+action+` "}]}}`)
	}
	// All that was asked for is optional.
	fits(t, c.call(frame("declined", `,"inputResponses":{"k":{"action":"accept"}}`)), `{"result":{"content":[{"text":"accept "}]}}`)
	rest := ""
	for range 5 {
		got := c.call(frame("endless", rest))
		fits(t, got, `{"result":{"resultType":"input_required","inputRequests":null}}`)
		rest = `,"requestState":` + memberOf(t, got, "result", "requestState")
	}
	fits(t, c.call(frame("endless", rest)), `{"error":{"code":-32603}}`)
	got := c.call(frame("state", ""))
	if strings.Contains(got, "9007199254740993") {
		t.Errorf("the state can be read: %s", got)
	}
	fits(t, c.call(frame("state", `,"requestState":`+memberOf(t, got, "result", "requestState"))), `{"result":{"content":[{"text":"kept"}]}}`)
	c.initialize("2025-11-25", "{}")
	fits(t, c.call(request("1", "tools/call", `"name":"state"`)), `{"result":{"content":[{"text":"kept"}]}}`)
	fits(t, c.call(request("1", "tools/call", `"name":"endless"`)), `{"error":{"code":-32603}}`)
}

// pipeServer serves a byte stream with Run, and returns its two ends and what
// Run will return.
func pipeServer(t *testing.T, ctx context.Context, s *Server) (in *io.PipeWriter, out *bufio.Reader, ran chan error) {
	serverIn, in := io.Pipe()
	clientOut, serverOut := io.Pipe()
	ran = make(chan error, 1)
	go func() {
		ran <- s.Run(ctx, &Stream{Reader: serverIn, Writer: serverOut})
		serverOut.Close()
	}()
	t.Cleanup(func() { in.Close(); clientOut.Close() })
	return in, bufio.NewReader(clientOut), ran
}

// soon waits for a value, and not for ever.
func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s does not happen", what)
	}
	return v
}

// At the end of input what runs is answered, a batch as a whole, and then Run
// returns.
func TestServerAnswersAfterTheEndOfInput(t *testing.T) {
	shows(t, "cancel.receiver.free", "batch.stdio.line", "lifecycle.errors-2024")
	leakCheck(t)
	s := testServer(nil)
	began, release := make(chan struct{}), make(chan struct{})
	rawTool(s, "slow", func(ctx context.Context, _ *Request) (*CallToolResult, error) {
		began <- struct{}{}
		<-release
		return textResult("%v", ctx.Err()), nil
	})
	rawTool(s, "roots", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		_, err := req.Roots(ctx, "r")
		return nil, err
	})
	for range 20 { // the order in which the two of a batch end is chance
		in, out, ran := pipeServer(t, context.Background(), s)
		fmt.Fprintln(in, initializeFrame("0", "2025-03-26", allCapabilities))
		line, _ := out.ReadString('\n')
		fits(t, line, `{"id":0,"result":{}}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		fmt.Fprintf(in, "\n  \r\n[%s,%s]\r\n", request("1", "tools/call", `"name":"slow"`), request("2", "tools/call", `"name":"slow"`))
		fmt.Fprintln(in, request("3", "tools/call", `"name":"roots"`)) // nobody can answer what it asks
		<-began
		<-began
		line, _ = out.ReadString('\n')
		fits(t, line, `{"method":"roots/list"}`)
		in.Close()
		line, _ = out.ReadString('\n')
		fits(t, line, `{"id":3,"result":{"isError":true}}`)
		release <- struct{}{}
		release <- struct{}{}
		line, _ = out.ReadString('\n')
		fits(t, line, `[{"result":{"content":[{"text":"<nil>"}]}},{"result":{"content":[{"text":"<nil>"}]}}]`)
		if err := soon(t, "the end of Run", ran); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
			t.Errorf("more came: %q, %v", rest, err)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	shows(t, "lifecycle.errors")
	leakCheck(t)
	s := testServer(nil)
	began, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	rawTool(s, "deaf", func(context.Context, *Request) (*CallToolResult, error) {
		close(began)
		<-release
		return nil, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	in, _, ran := pipeServer(t, ctx, s)
	fmt.Fprintln(in, modernRequest("1", "tools/call", `"name":"deaf"`, "{}"))
	<-began
	cancel()
	if err := soon(t, "the end of Run", ran); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	if err := s.Run(ctx, func() Transport { _, st := InMemory(); return st }()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over Run returned %v", err)
	}
}

func TestHandlerClosesItsSession(t *testing.T) {
	shows(t, "cancel.receiver.stop")
	leakCheck(t)
	s := emptyServer(nil)
	ended := make(chan error, 1)
	rawTool(s, "bye", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		req.Session().Close()
		req.Session().Close()
		ended <- context.Cause(ctx)
		return textResult("nobody hears this"), nil
	})
	c, ss := dialServer(t, s)
	c.send(modernRequest("1", "tools/call", `"name":"bye"`, "{}"))
	if cause := soon(t, "Close", ended); !errors.Is(cause, ErrClosed) {
		t.Errorf("the cause is %v", cause)
	}
	if err := ss.Wait(); err != nil {
		t.Errorf("Wait returned %v", err)
	}
	if frame, err := c.conn.Read(context.Background()); !errors.Is(err, io.EOF) {
		t.Errorf("read %s, %v", frame, err)
	}
}

// A wedged conn delivers frames and takes none.
type wedged struct {
	in   chan []byte
	gone chan struct{}
	once sync.Once
}

func (w *wedged) Connect(context.Context) (Conn, error) { return w, nil }

func (w *wedged) Read(context.Context) ([]byte, error) {
	select {
	case frame := <-w.in:
		return frame, nil
	case <-w.gone:
		return nil, ErrClosed
	}
}

func (w *wedged) Write(context.Context, []byte) error {
	<-w.gone
	return ErrClosed
}

func (w *wedged) Close() error {
	w.once.Do(func() { close(w.gone) })
	return nil
}

// A peer that asks and never reads is not read for ever, and does not hold up
// Close.
func TestServerAndAPeerThatDoesNotRead(t *testing.T) {
	shows(t, "lifecycle.errors")
	leakCheck(t)
	w := &wedged{in: make(chan []byte), gone: make(chan struct{})}
	ss, err := testServer(nil).Connect(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	id := `"` + strings.Repeat("x", 1<<20) + `"`
	read := 0
	for stalled := false; !stalled && read < 100; {
		select {
		case w.in <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id):
			read++
		case <-time.After(500 * time.Millisecond):
			stalled = true
		}
		id = id[:2] + fmt.Sprint(read) + id[2:]
	}
	if read == 100 {
		t.Errorf("%d MiB of requests were read while no answer was", read)
	}
	closed := make(chan error, 1)
	go func() { closed <- ss.Close() }()
	if err := soon(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
}

// Many callers at once, of both eras, on one connection.
func TestServerServesManyAtOnce(t *testing.T) {
	shows(t, "stateless.interleaving", "version.dual.concurrent", "base.response.same-id", "progress.increasing")
	leakCheck(t)
	const callers, calls = 64, 20
	s := testServer(nil)
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	var wg sync.WaitGroup
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := range calls {
				n := i*calls + k
				id, frame := fmt.Sprint(n), request
				if i%2 == 1 {
					id = `"` + id + `"`
					frame = func(id, method, params string) string {
						return modernRequest(id, method, params, `{},"progressToken":`+id)
					}
				}
				params := fmt.Sprintf(`"name":"add","arguments":{"a":%d,"b":1}`, n)
				if k%5 == 4 {
					params = `"name":"count","arguments":{"to":3}`
				}
				if err := c.conn.Write(context.Background(), []byte(frame(id, "tools/call", params))); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	changing := make(chan struct{})
	go func() { // while the tools change
		defer close(changing)
		for i := range 50 {
			rawTool(s, "new", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
			if i%2 == 1 {
				s.RemoveTools("new")
			}
		}
	}()
	answered, progress := map[string]bool{}, map[string]int{}
	for len(answered) < callers*calls {
		got := c.next()
		id := memberOf(t, got, "id")
		if id == "" {
			if token := memberOf(t, got, "params", "progressToken"); token != "" {
				progress[token]++
				if p := memberOf(t, got, "params", "progress"); p != fmt.Sprint(progress[token]) || answered[token] {
					t.Errorf("progress %s of %s", p, token)
				}
			}
			continue
		}
		if answered[id] {
			t.Errorf("%s is answered twice", id)
		}
		answered[id] = true
		var n int
		fmt.Sscan(strings.Trim(id, `"`), &n)
		if n%calls%5 == 4 {
			fits(t, got, `{"result":{"content":[{"text":"done"}]}}`)
		} else {
			fits(t, got, fmt.Sprintf(`{"result":{"structuredContent":{"sum":%d}}}`, n+1))
		}
	}
	wg.Wait()
	<-changing
}

// What a client says of itself, and what it says under keys that mean
// nothing here, changes nothing.
func TestServerIgnoresWhatIsNotForIt(t *testing.T) {
	shows(t, "meta.info.no-behaviour", "meta.info.no-security", "meta.reserved.no-assumptions", "meta.trace.unprefixed", "base.result.open-shape")
	leakCheck(t)
	s := emptyServer(nil)
	rawTool(s, "t", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s %s", req.Meta()["traceparent"], req.Meta()["io.modelcontextprotocol/later"]), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	var first string
	for _, info := range []string{"", `,"io.modelcontextprotocol/clientInfo":{"name":"admin","version":"9","later":[]}`, `,"io.modelcontextprotocol/clientInfo":{"name":"","version":""}`} {
		for _, method := range []string{"tools/list", "server/discover"} {
			fits(t, c.call(modernRequest("1", method, "", `{"later":{},"experimental":{"x":{}}}`+info)), `{"result":{}}`)
		}
		got := c.call(modernRequest("1", "tools/call", `"name":"t","later":[1]`, `{}`+info+`,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","io.modelcontextprotocol/later":{"n":1.0}`))
		if first == "" {
			first = got
			fits(t, got, `{"result":{"content":[{"text":"\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\" {\"n\":1.0}"}]}}`)
		}
		if got != first {
			t.Errorf("got %s\nfor other clients %s", got, first)
		}
	}
	fits(t, c.call(request("1", "tools/call", `"name":"t","inputResponses":7,"requestState":7,"_meta":{"traceparent":7}`)), `{"result":{"content":[{"text":" "}]}}`)
}

// What the protocol asks of a server's author is refused when it is registered.
func TestServerRegistrationPanics(t *testing.T) {
	shows(t, "tools.input.object", "tools.input.type-object", "resources.uri.custom", "tools.name.unique")
	s := testServer(nil)
	tool := func(name, in, out string) func() {
		t := Tool{Name: name, InputSchema: json.RawMessage(in)}
		if out != "" {
			t.OutputSchema = json.RawMessage(out)
		}
		return func() { s.AddTool(t, func(context.Context, *Request) (*CallToolResult, error) { return nil, nil }) }
	}
	resource := func(uri, name string) func() {
		return func() {
			s.AddResource(Resource{URI: uri, Name: name}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil })
		}
	}
	for name, register := range map[string]func(){
		"no name": tool("", `{"type":"object"}`, ""), "no schema": tool("t", ``, ""), "null": tool("t", `null`, ""), "true": tool("t", `true`, ""), "no type": tool("t", `{}`, ""),
		"array": tool("t", `{"type":"array"}`, ""), "types": tool("t", `{"type":["object"]}`, ""), "not JSON": tool("t", `{"type":"object"`, ""), "type twice": tool("t", `{"type":"object","type":"array"}`, ""),
		"bad schema": tool("t", `{"type":"object","properties":7}`, ""), "bad output": tool("t", `{"type":"object"}`, `{"type":7}`),
		"relative": resource("a/b", "n"), "path": resource("/a", "n"), "no scheme": resource(":a", "n"), "space": resource("x:a b", "n"), "digit": resource("1x:a", "n"), "no resource name": resource("x:a", ""),
		"template": func() { s.AddResourceTemplate(ResourceTemplate{URITemplate: "x:{", Name: "n"}, nil) },
		"no template": func() {
			s.AddResourceTemplate(ResourceTemplate{Name: "n"}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil })
		},
		"no typed handler": func() { AddTool[struct{}, string](s, Tool{Name: "t"}, nil) },
		"prompt":           func() { s.AddPrompt(Prompt{Name: "p"}, nil) },
		"method":           func() { s.Handle("initialize", func(context.Context, *Request) (any, error) { return nil, nil }) },
		"input": func() {
			AddTool(s, Tool{Name: "t"}, func(context.Context, *Request, int) (string, error) { return "", nil })
		},
		"version":  func() { NewServer(Implementation{}, &ServerOptions{Versions: []string{"2025-01-01"}}) },
		"versions": func() { NewServer(Implementation{}, &ServerOptions{Versions: []string{}}) },
		"key":      func() { NewServer(Implementation{}, &ServerOptions{StateKeys: [][]byte{[]byte("short")}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			register()
		}()
	}
	// A name that is registered again is replaced where it stands.
	c, _ := dialServer(t, s)
	before := c.call(modernRequest("1", "tools/list", "", "{}"))
	tool("ask", `{"type":"object","title":"new"}`, "")()
	after := c.call(modernRequest("1", "tools/list", "", "{}"))
	if strings.Count(after, `"name":"`) != strings.Count(before, `"name":"`) || !strings.Contains(after, `"ask","inputSchema":{"type":"object","title":"new"}`) {
		t.Errorf("the list is %s", after)
	}
}

// Binary content is base64 with its type beside it, and a text is a text.
func TestServerWritesContentOfEveryKind(t *testing.T) {
	shows(t, "prompts.image", "prompts.audio", "prompts.embedded", "resources.text-only", "tools.content.audio", "tools.content.embedded", "tools.content.resource-link")
	leakCheck(t)
	s := emptyServer(nil)
	content := []Content{
		{Type: "image", Data: []byte{0xfb, 0xff, 0}, MIMEType: "image/png"}, {Type: "audio", Data: []byte{}, MIMEType: "audio/wav"},
		{Type: "resource", Resource: &ResourceContents{URI: "x:a", MIMEType: "text/plain", Text: "é"}},
		{Type: "resource", Resource: &ResourceContents{URI: "x:b", MIMEType: "a/b", Blob: []byte{1}}}, {Type: "resource_link", URI: "x:c", Name: "c"},
	}
	s.AddPrompt(Prompt{Name: "p"}, func(context.Context, *Request) (*GetPromptResult, error) {
		r := new(GetPromptResult)
		for _, c := range content {
			r.Messages = append(r.Messages, PromptMessage{Role: "user", Content: c})
		}
		return r, nil
	})
	AddTool(s, Tool{Name: "t"}, func(context.Context, *Request, struct{}) ([]Content, error) { return content, nil })
	c, _ := dialServer(t, s)
	blocks := []string{`{"type":"image","data":"+/8A","mimeType":"image/png","text":null}`, `{"type":"audio","data":"","mimeType":"audio/wav"}`,
		`{"type":"resource","resource":{"uri":"x:a","mimeType":"text/plain","text":"é","blob":null}}`, `{"type":"resource","resource":{"uri":"x:b","mimeType":"a/b","blob":"AQ==","text":null}}`, `{"type":"resource_link","uri":"x:c","name":"c"}`}
	fits(t, c.call(modernRequest("1", "tools/call", `"name":"t"`, "{}")), `{"result":{"content":[`+strings.Join(blocks, ",")+`]}}`)
	fits(t, c.call(modernRequest("1", "prompts/get", `"name":"p"`, "{}")), `{"result":{"messages":[{"content":`+strings.Join(blocks, `},{"content":`)+`}]}}`)
}

// A question that nobody needs any more is taken back, and its late answer
// hurts nobody.
func TestServerTakesBackItsQuestion(t *testing.T) {
	shows(t, "cancel.target.direction", "cancel.request-id", "cancel.sender.late", "cancel.receiver.no-response")
	leakCheck(t)
	c, _ := dialServer(t, testServer(nil))
	c.initialize("2025-11-25", allCapabilities)
	for _, call := range []string{"1", "2", "3"} { // an id is free again only when its handler has returned
		question := c.call(request(call, "tools/call", `"name":"ask"`))
		fits(t, question, `{"method":"elicitation/create","params":{"mode":null,"elicitationId":null}}`)
		id := memberOf(t, question, "id")
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + call + `}}`)
		fits(t, c.next(), `{"id":null,"method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"name":"late"}}}`)
		c.alive()
	}
}

// A handler that ends its goroutine, as FailNow of a test does, is answered
// like one that panics, and its id is free again.
func TestServerAnswersForAHandlerThatDoesNotReturn(t *testing.T) {
	leakCheck(t)
	s := emptyServer(nil)
	AddTool(s, Tool{Name: "gone"}, func(context.Context, *Request, struct{}) (string, error) {
		runtime.Goexit()
		return "", nil
	})
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == "notifications/gone" {
				runtime.Goexit()
			}
			return next(ctx, req)
		}
	})
	heard := make(chan struct{})
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == "notifications/here" {
				close(heard)
			}
			return next(ctx, req)
		}
	})
	c, _ := dialServer(t, s)
	for range 2 {
		c.send(modernRequest("1", "tools/call", `"name":"gone"`, "{}"))
		c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/gone"}`, `{"jsonrpc":"2.0","method":"notifications/here"}`)
	<-heard
}

// A Go value is encoded as its schema says, with the methods of its pointer.
func TestTypedResultIsEncodedWithTheMethodsOfItsPointer(t *testing.T) {
	leakCheck(t)
	type sums = struct { // without a name: what this package names is encoded by its own encoder
		N big.Int `json:"n"`
	}
	s := emptyServer(nil)
	AddTool(s, Tool{Name: "sum"}, func(context.Context, *Request, struct{}) (sums, error) {
		return sums{*big.NewInt(7)}, nil
	})
	AddTool(s, Tool{Name: "plain"}, func(context.Context, *Request, struct{}) (big.Int, error) {
		return *big.NewInt(7), nil
	})
	c, _ := dialServer(t, s)
	for name, want := range map[string]string{"sum": `"structuredContent":{"n":7}`, "plain": `"structuredContent":7`} {
		if got := c.call(modernRequest("1", "tools/call", `"name":"`+name+`"`, "{}")); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The short way to write the result of a typed tool gives the same bytes as
// the long one.
func TestToolResultIsWrittenTheSameWay(t *testing.T) {
	s := NewServer(Implementation{Name: "s", Version: "1", Title: "T"}, nil)
	for _, r := range []toolResult{
		{text: "plain"}, {}, {text: "\"<\u2028\x00\xff"},
		{structured: json.RawMessage(`{"a":"<\u0000","b":[1]}`)}, {structured: json.RawMessage(`[1]`)}, {structured: json.RawMessage(`null`)},
	} {
		for _, rev := range revisions {
			req := &Request{Method: methodToolsCall, rev: rev}
			long, err := s.encodeResult(nil, req, r.whole())
			if short := r.append(nil, rev, s.stamp); err != nil || string(short) != string(long) {
				t.Errorf("%s: %s instead of %s, %v", rev.version, short, long, err)
			}
		}
	}
}
