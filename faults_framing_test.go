//go:build go1.25

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Faults of framing, envelopes and ids.

// folds are the ways in which a lax decoder may take another name for this one.
func folds(name string) (others []string) {
	for _, other := range []string{
		strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:],
		strings.ReplaceAll(name, "s", "\u017f"), strings.ReplaceAll(name, "k", "\u212a"), name + " ", name + "\x00",
	} {
		if other != name && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	return others
}

// TestFault01KeysMatchExactly puts beside every member of everything that a
// peer can send one whose name is almost the same. It must not count.
func TestFault01KeysMatchExactly(t *testing.T) {
	shows(t, "errors.invalid-params")
	for _, pt := range protocolTypes {
		for _, rev := range revisions {
			members, ok := pt.at(rev)
			if !ok {
				continue
			}
			name := fmt.Sprintf("%T %s at %s", pt.value, pt.kind, rev.version)
			doc, err := encodeAt(nil, pt.filled(rev), rev)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := decodedAnew(t, pt.value, doc, rev)
			for _, member := range members {
				for _, other := range folds(member) {
					key := string(appendString(nil, other)) + `:[7]`
					for _, folded := range []string{"{" + key + "," + string(doc[1:]), string(doc[:len(doc)-1]) + "," + key + "}"} {
						if got := decodedAnew(t, pt.value, []byte(folded), rev); !reflect.DeepEqual(got, want) {
							t.Errorf("%s: %q was read\ngot  %+v\nwant %+v", name, other, got, want)
						}
					}
				}
			}
		}
	}
}

// decodedAnew reads a document into a new value, without what the type keeps
// of members that it does not know.
func decodedAnew(t *testing.T, value any, doc []byte, rev *revision) any {
	t.Helper()
	v := reflect.New(reflect.TypeOf(value))
	if err := decodeAt(doc, v.Interface(), rev, true); err != nil {
		t.Errorf("%T: %v in %s", value, err, doc)
	}
	if f := v.Elem().FieldByName("kept"); f.IsValid() {
		typed := v.Elem()
		copied := reflect.New(typed.Type()).Elem()
		for i := range typed.NumField() {
			if typed.Type().Field(i).IsExported() {
				copied.Field(i).Set(typed.Field(i))
			}
		}
		return copied.Interface()
	}
	return v.Elem().Interface()
}

// The same, through a whole server and a whole client.
func TestFault01KeysMatchExactlyOnTheWire(t *testing.T) {
	shows(t, "errors.invalid-params", "tools.sec.validate-input", "base.response.exclusive")
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "secret", func(context.Context, *Request) (*CallToolResult, error) {
		t.Error("the secret tool ran")
		return nil, nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", "{}")
	envelope := map[string]string{"jsonrpc": `"1.0"`, "id": `99`, "method": `"tools/call"`, "params": `{"name":"secret"}`}
	for member, value := range envelope {
		for _, other := range folds(member) {
			key := string(appendString(nil, other)) + ":" + value
			fits(t, c.call(`{`+key+`,"jsonrpc":"2.0","id":1,"method":"ping"}`), `{"id":1,"result":{}}`)
			fits(t, c.call(`{"jsonrpc":"2.0","id":1,"method":"ping",`+key+`}`), `{"id":1,"result":{}}`)
			missing := maps.Clone(envelope)
			missing["jsonrpc"], missing["method"] = `"2.0"`, `"ping"`
			delete(missing, member)
			missing[other] = value
			frame, _ := json.Marshal(rawMap(missing))
			switch member {
			case "jsonrpc", "method":
				fits(t, c.call(string(frame)), `{"id":99,"error":{"code":-32600}}`)
			case "params":
				fits(t, c.call(string(frame)), `{"id":99,"result":{}}`)
			case "id":
				c.send(string(frame)) // a notification, then
			}
			c.alive()
		}
	}
	for _, other := range folds("protocolVersion") {
		other = strings.TrimSuffix(string(appendString(nil, other)), `"`)[1:]
		fits(t, c.call(request("1", "tools/list", `"_meta":{"io.modelcontextprotocol/`+other+`":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)), `{"result":{"resultType":null}}`)
	}
	for _, other := range folds("progressToken") {
		c.send(request("1", "tools/call", `"name":"count","arguments":{"to":1},"_meta":{`+string(appendString(nil, other))+`:5}`))
		fits(t, c.next(), `{"id":1,"result":{}}`) // and no progress before
	}
}

func rawMap(values map[string]string) map[string]json.RawMessage {
	raw := make(map[string]json.RawMessage)
	for name, value := range values {
		raw[name] = json.RawMessage(value)
	}
	return raw
}

func TestFault01ClientMatchesKeysExactly(t *testing.T) {
	shows(t, "base.response.exclusive", "base.response.same-id")
	eachEra(t, func(t *testing.T, version string) {
		for _, c := range []struct{ member, value string }{{"id", "12345"}, {"result", `{"tools":[{"name":"evil","inputSchema":{"type":"object"}}]}`}, {"error", `{"code":1,"message":"evil"}`}, {"jsonrpc", `"1.0"`}, {"method", `"ping"`}} {
			for _, other := range folds(c.member) {
				cs, _ := connected(t, version, ClientOptions{}, func(m Message) []string {
					return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"tools":[],"Tools":[7],"nextcursor":"x"},` + string(appendString(nil, other)) + ":" + c.value + `}`}
				})
				for tool, err := range cs.With(CallOptions{Insist: true}).Tools(t.Context()) {
					t.Errorf("%s: %v, %v", other, tool, err)
				}
			}
		}
	})
}

// oddIDs are what a peer may choose.
var oddIDs = []string{`0`, `-1`, `2147483648`, `1774232524389`, `9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `123456789012345678901234567890`,
	`""`, `"0"`, `"1"`, `"001"`, `" "`, `"null"`, `"9007199254740993"`, `"é\u0000"`, `"\u00e9"`, `"\ud83d\ude00"`, `"a\"b\\"`}

// TestFault02IDsComeBack sends every id to all that answers with it: results,
// errors of all sorts, progress, subscriptions, cancellations of questions.
func TestFault02IDsComeBack(t *testing.T) {
	shows(t, "base.response.same-id", "base.id.type", "subs.id.value", "progress.token.type")
	leakCheck(t)
	for _, modern := range []bool{false, true} {
		c, _ := dialServer(t, testServer(nil))
		ask := func(id, method, params string) string { return modernRequest(id, method, params, "{}") }
		if !modern {
			c.initialize("2025-11-25", "{}")
			ask = request
		}
		for _, id := range oddIDs {
			for _, frame := range []string{
				ask(id, "tools/list", ""), ask(id, "tools/call", `"name":"fail"`), ask(id, "tools/call", `"name":"panic"`), ask(id, "tools/call", `"name":"none"`),
				ask(id, "tools/call", `"name":7`), ask(id, "x/none", ""), `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":[]}`,
				`{"jsonrpc":"1.0","id":` + id + `,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":` + id + `,"method":7}`,
			} {
				if got := memberOf(t, c.call(frame), "id"); got != id {
					t.Errorf("%s came back as %s: %s", id, got, frame)
				}
			}
			frame := ask("1", "tools/call", `"name":"count","arguments":{"to":1},"_meta":{"progressToken":`+id+`}`)
			if modern {
				frame = request("1", "tools/call", `"name":"count","arguments":{"to":1},`+strings.TrimSuffix(modernMeta, "}")+`,"progressToken":`+id+`}`)
			}
			if got := memberOf(t, c.call(frame), "params", "progressToken"); got != id {
				t.Errorf("the token %s came back as %s", id, got)
			}
			c.next()
			if modern {
				if got := memberOf(t, c.call(listenFrame(id, `{"toolsListChanged":true}`)), "params", "_meta", metaSubscriptionID); got != id {
					t.Errorf("the subscription %s came back as %s", id, got)
				}
			}
		}
	}
}

// The client's side: what a legacy server asks.
func TestFault02ClientSendsIDsBack(t *testing.T) {
	shows(t, "base.response.same-id", "base.id.type")
	bubble(t, func(t *testing.T) {
		_, s := connected(t, Version20251125, answering(), silent)
		for _, id := range oddIDs {
			for _, rest := range []string{`"method":"ping"`, `"method":"roots/list"`, `"method":"x/none"`, `"method":"elicitation/create","params":{"message":7}`, `"method":"elicitation/create","params":[]`} {
				s.send(`{"jsonrpc":"2.0","id":` + id + `,` + rest + `}`)
				synctest.Wait()
				if got := memberOf(t, s.raw[len(s.raw)-1], "id"); got != id {
					t.Errorf("%s came back as %s: %s", id, got, rest)
				}
			}
		}
	})
}

// TestFault03ZeroIsNotAbsent: whatever is zero or empty is there.
func TestFault03ZeroIsNotAbsent(t *testing.T) {
	shows(t, "cancel.receiver.stop", "progress.token.type", "pagination.empty-cursor-server")
	for _, c := range []struct {
		v   any
		rev *revision
		doc string
	}{
		{new(ProgressParams), rev20260728, `{"progressToken":0,"progress":0,"total":0}`},
		{new(ProgressParams), rev20260728, `{"progressToken":"","progress":0}`},
		{new(CancelledParams), rev20260728, `{"requestId":0}`}, {new(CancelledParams), rev20260728, `{"requestId":""}`},
		{new(ListParams), rev20260728, `{"cursor":""}`},
		{new(ListToolsResult), rev20260728, `{"tools":[],"nextCursor":""}`},
		{new(CallToolParams), rev20260728, `{"name":"","arguments":{},"inputResponses":{},"requestState":""}`},
		{new(CallToolResult), rev20260728, `{"content":[],"structuredContent":null}`}, {new(CallToolResult), rev20260728, `{"content":[],"structuredContent":0}`},
		{new(CallToolResult), rev20260728, `{"content":[],"structuredContent":false}`}, {new(CallToolResult), rev20260728, `{"content":[],"structuredContent":""}`},
		{new(Content), rev20260728, `{"type":"text","text":""}`}, {new(Content), rev20260728, `{"type":"image","data":"","mimeType":""}`},
		{new(Content), rev20260728, `{"type":"resource_link","uri":"","name":"","size":0}`},
		{new(ResourceContents), rev20260728, `{"uri":"","text":""}`}, {new(ResourceContents), rev20260728, `{"uri":"","blob":""}`},
		{new(Annotations), rev20260728, `{"audience":[],"priority":0}`},
		{new(ToolAnnotations), rev20260728, `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false}`},
		{new(Completion), rev20260728, `{"values":[],"total":0}`},
		{new(CompleteParams), rev20260728, `{"ref":{"type":"ref/prompt","name":""},"argument":{"name":"","value":""},"context":{"arguments":{}}}`},
		{new(CreateMessageParams), rev20260728, `{"messages":[],"modelPreferences":{"hints":[],"costPriority":0,"speedPriority":0,"intelligencePriority":0},"temperature":0,"maxTokens":0,"stopSequences":[],"tools":[]}`},
		{new(GetPromptParams), rev20260728, `{"name":"","arguments":{}}`},
		{new(LogParams), rev20260728, `{"level":"info","data":null}`}, {new(LogParams), rev20260728, `{"level":"info","data":0}`},
		{new(InputRequiredResult), rev20260728, `{"resultType":"input_required","inputRequests":{},"requestState":""}`},
		{new(SubscriptionFilter), rev20260728, `{"resourceSubscriptions":[]}`},
		{new(TaskMetadata), rev20251125, `{"ttl":0}`},
		{new(ServerCapabilities), rev20260728, `{"experimental":{},"logging":{},"tools":{},"extensions":{"a.b/c":{}}}`},
	} {
		for _, strict := range []bool{true, false} {
			v := reflect.New(reflect.TypeOf(c.v).Elem()).Interface()
			if err := decodeAt([]byte(c.doc), v, c.rev, strict); err != nil {
				t.Errorf("%T: %v in %s", c.v, err, c.doc)
				continue
			}
			if got, err := encodeAt(nil, v, c.rev); err != nil || !sameJSON(got, []byte(c.doc)) {
				t.Errorf("%T: %s became %s, %v", c.v, c.doc, got, err)
			}
		}
	}
}

// oddRequests have an id that none may have.
var oddRequests = []string{`null`, `1.5`, `1.0`, `1e2`, `1e400`, `-0.5`, `{}`, `[]`, `[1]`, `true`, `false`}

// TestFault04OddIDsAreRefused sends them to either side, at every revision, as
// requests and as answers.
func TestFault04OddIDsAreRefused(t *testing.T) {
	shows(t, "base.id.not-null", "base.id.type", "base.error.id-unreadable")
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		c, _ := dialServer(t, testServer(nil))
		if version != Version20260728 {
			c.initialize(version, "{}")
		}
		for _, id := range oddRequests {
			for _, rest := range []string{`"method":"tools/list"`, `"method":"tools/list","params":{` + modernMeta + `}`, `"method":"x/none"`, `"method":"initialize"`} {
				fits(t, c.call(`{"jsonrpc":"2.0","id":`+id+`,`+rest+`}`), `{"id":null,"error":{"code":-32600}}`)
			}
			c.send(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":1,"message":"m"}}`)
			c.alive()
		}
	})
}

func TestFault04ClientRefusesOddIDs(t *testing.T) {
	shows(t, "base.id.not-null", "base.error.id-unreadable")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, answering(), func(m Message) []string {
			if !m.IsRequest() {
				return nil
			}
			frames := []string{`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`}
			for _, id := range oddRequests {
				frames = append(frames, `{"jsonrpc":"2.0","id":`+id+`,"method":"roots/list"}`, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`,
					`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32700,"message":"x"}}`)
			}
			return append(frames, resultOf(m, `{"contents":[]}`))
		})
		if _, err := cs.With(CallOptions{Insist: true}).ReadResource(t.Context(), "x:y"); err != nil {
			t.Error(err)
		}
		want := 0 // a client of a modern server answers nothing
		if version == Version20251125 {
			want = len(oddRequests)
		}
		if got := len(s.of("response")); got != want {
			t.Errorf("%d answers, want %d", got, want)
		}
		synctest.Wait()
		for _, frame := range s.raw {
			if rawMember([]byte(frame), "error") != nil {
				fits(t, frame, `{"id":null,"error":{"code":-32600}}`)
			}
		}
	})
}

// A serverCall is a method of a server with params that it takes.
type serverCall struct{ method, params string }

// serverCalls has every method that a server answers.
var serverCalls = []serverCall{
	{methodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`},
	{methodDiscover, `{}`}, {methodPing, `{}`}, {methodSetLevel, `{"level":"info"}`},
	{methodToolsList, `{}`}, {methodPromptsList, `{}`}, {methodResourcesList, `{}`}, {methodTemplatesList, `{}`},
	{methodToolsCall, `{"name":"add","arguments":{"a":1,"b":2}}`}, {methodResourcesRead, `{"uri":"test://a"}`},
	{methodSubscribe, `{"uri":"test://a"}`}, {methodUnsubscribe, `{"uri":"test://a"}`},
	{methodPromptsGet, `{"name":"greet","arguments":{"name":"x"}}`},
	{methodComplete, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""},"context":{"arguments":{"a":"b"}}}`},
	{methodListen, `{"notifications":{"toolsListChanged":true}}`},
}

// serverParams are the Go types of their params, of which it is read what is required.
var serverParams = map[string]any{
	methodInitialize: InitializeParams{}, methodSetLevel: SetLevelParams{}, methodToolsCall: CallToolParams{}, methodResourcesRead: ReadResourceParams{},
	methodSubscribe: SubscribeParams{}, methodUnsubscribe: SubscribeParams{}, methodPromptsGet: GetPromptParams{}, methodComplete: CompleteParams{}, methodListen: ListenParams{},
	methodDiscover: EmptyParams{}, methodPing: EmptyParams{}, methodToolsList: ListParams{}, methodPromptsList: ListParams{}, methodResourcesList: ListParams{}, methodTemplatesList: ListParams{},
}

func completing() *ServerOptions {
	return &ServerOptions{Complete: func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) { return nil, nil }}
}

// TestFault05Params takes the params of every method apart: each value within
// them is left out, null, and of every wrong type. The answer is -32602, or a
// result where the value may be absent.
func TestFault05Params(t *testing.T) {
	shows(t, "errors.invalid-params", "tools.error.malformed", "prompts.args.validate", "completion.validate")
	for method := range serverMethods {
		if !slices.ContainsFunc(serverCalls, func(c serverCall) bool { return c.method == method }) || serverParams[method] == nil {
			t.Errorf("%s is not in the tables of this test", method)
		}
	}
	for _, rev := range []*revision{rev20251125, rev20260728} {
		for _, call := range serverCalls {
			if methodDefined(call.method, rev, true) {
				t.Run(rev.version+" "+call.method, func(t *testing.T) { takeApart(t, rev, call) })
			}
		}
	}
}

func takeApart(t *testing.T, rev *revision, call serverCall) {
	leakCheck(t)
	c, _ := dialServer(t, testServer(completing()))
	if !rev.modern && call.method != methodInitialize {
		c.initialize(rev.version, "{}")
	}
	frame := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + call.method + `","params":` + params + `}`
	}
	for _, params := range []string{`null`, `[]`, `"x"`, `7`, `true`} {
		fits(t, c.call(frame(params)), `{"id":1,"error":{"code":-32602}}`)
	}
	whole := parsed(t, call.params)
	for _, m := range mutations(whole, reflect.TypeOf(serverParams[call.method])) {
		text, _ := json.Marshal(m.value)
		params := string(text)
		if rev.modern {
			params = strings.Replace(params, "{", "{"+modernMeta+",", 1)
			params = strings.Replace(params, ",}", "}", 1)
		}
		got := c.call(frame(params))
		if bad := memberOf(t, got, "error", "code"); bad != "" && bad != "-32602" || m.required && bad == "" {
			t.Errorf("%s: %s", params, got)
		}
		if strings.Contains(got, notifyAcknowledged) { // the subscription is there; it must go before its id comes again
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			waitUntil(t, "the subscription is gone", func() bool {
				answer := c.call(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				return memberOf(t, answer, "error", "code") != "-32600"
			})
		}
		if !rev.modern && bad(got) == "" && call.method == methodInitialize {
			t.Fatalf("%s opened a session", params)
		}
	}
	c.alive()
}

func bad(frame string) string { return string(rawMember([]byte(frame), "error")) }

// A mutation is a document with one value of another gone or changed.
type mutation struct {
	value    any
	required bool // an answer must be an error
}

// mutations returns every document that differs from doc in one member at any
// depth: it is absent, or of every other type. typ tells which are required.
func mutations(doc any, typ reflect.Type) (all []mutation) {
	object, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	for typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	for name, value := range object {
		required, member := false, reflect.Type(nil)
		if typ != nil && typ.Kind() == reflect.Struct {
			for i := range typ.NumField() {
				f := typ.Field(i)
				if tag, options, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
					required, member = options == "", f.Type
				}
			}
		}
		with := func(v any) map[string]any {
			changed := maps.Clone(object)
			changed[name] = v
			return changed
		}
		without := maps.Clone(object)
		delete(without, name)
		all = append(all, mutation{without, required})
		for _, other := range []any{nil, true, 7, 1.5, "", []any{}, []any{nil}, map[string]any{"": nil}} {
			if fmt.Sprintf("%T", other) != fmt.Sprintf("%T", value) {
				all = append(all, mutation{with(other), required || member != nil})
			}
		}
		for _, deeper := range mutations(value, member) {
			all = append(all, mutation{with(deeper.value), deeper.required})
		}
	}
	return all
}

// badLines are lines that carry no message, and the codes they are answered
// with; 0 is none.
var badLines = []struct {
	line string
	code int
}{
	{`{oops`, -32700}, {`{"jsonrpc":"2.0","id":1,"method":"ping"`, -32700}, {"\xff\xfe", -32700}, {`{"jsonrpc":"2.0","id":1,"method":"\ud800x"} trailing`, -32700}, {`nul`, -32700},
	{"", 0}, {"   \t", 0}, {"\r", 0},
	{`null`, -32600}, {`42`, -32600}, {`"x"`, -32600}, {`[]`, -32600}, {`{}`, -32600}, {`true`, -32600}, {"\x00", -32700},
	{strings.Repeat("[", 20000), -32700}, {strings.Repeat(`{"a":`, 20000), -32700},
}

// TestFault06BadLines: a line that cannot be read costs only itself, on either
// side of a byte stream.
func TestFault06BadLines(t *testing.T) {
	shows(t, "errors.parse", "errors.invalid-request", "stdio.framing")
	leakCheck(t)
	in, out, ran := pipeServer(t, t.Context(), testServer(nil))
	for _, c := range badLines {
		fmt.Fprintf(in, "%s\n%s\n", c.line, `{"jsonrpc":"2.0","id":99,"method":"ping"}`)
		if c.code != 0 {
			line := readLine(t, out)
			fits(t, line, fmt.Sprintf(`{"id":null,"error":{"code":%d}}`, c.code))
		}
		fits(t, readLine(t, out), `{"id":99,"result":{}}`)
	}
	in.Close()
	if err := soon(t, "the end", ran); err != nil {
		t.Error(err)
	}
}

// readLine reads a frame from a stream and checks it.
func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	line = strings.TrimSuffix(line, "\n")
	checkFrame(t, line)
	return line
}

func TestFault06ClientSurvivesBadLines(t *testing.T) {
	shows(t, "base.error.id-unreadable")
	for _, version := range []string{Version20251125, Version20260728} {
		leakCheck(t)
		peer := pipePeer(t, version, func(m Message) (lines []string) {
			for _, c := range badLines {
				lines = append(lines, c.line)
			}
			return append(lines, resultOf(m, `{"contents":[]}`))
		})
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: []string{version}}).Connect(t.Context(), peer)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		for range 3 {
			if _, err := cs.With(CallOptions{Insist: true}).ReadResource(t.Context(), "x:y"); err != nil {
				t.Errorf("%s: %v", version, err)
			}
		}
	}
}

// pipePeer is a scripted server on a byte stream: it writes the lines of
// answer, each with an end of its own.
func pipePeer(t *testing.T, version string, answer react) Transport {
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	all := modern(answer)
	if version != Version20260728 {
		all = legacy(version, answer)
	}
	outgoing := make(chan string, 1000) // who writes must not be kept from reading
	go func() {
		defer out.Close()
		for line := range outgoing {
			io.WriteString(out, line+"\n")
		}
	}()
	go func() {
		defer close(outgoing)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			checkFrame(t, lines.Text())
			m, isResponse, _ := decodeMessage(bytes.Clone(lines.Bytes()))
			if isResponse || !m.IsRequest() {
				continue
			}
			for _, line := range all(m) {
				outgoing <- line
			}
		}
	}()
	return &Stream{Reader: clientIn, Writer: clientOut}
}

// TestFault07LongLines carries texts of many sizes in both directions, in
// params, results, notifications and questions.
func TestFault07LongLines(t *testing.T) {
	shows(t, "stdio.framing")
	for _, version := range []string{Version20251125, Version20260728} {
		leakCheck(t)
		v := &visit{t: t, ctx: t.Context(), road: roads[1], version: version}
		cs := v.connect("everything", ClientOptions{})
		for _, size := range []int{4095, 4096, 65535, 65536, 65537, 1 << 20, 16 << 20} {
			text := strings.Repeat("x", size)
			if got, err := CallTool[string](t.Context(), cs, "echo", map[string]string{"a": text}); err != nil || got != `{"a":"`+text+`"}` {
				t.Errorf("%s: %d bytes became %d, %v", version, size, len(got), err)
			}
		}
		text := strings.Repeat("x", 17<<20)
		_, err := cs.With(CallOptions{Timeout: 2 * time.Second}).CallTool(t.Context(), "echo", map[string]string{"a": text})
		if err == nil {
			t.Errorf("%s: 17 MiB went through", version)
		}
		if err := cs.Ping(t.Context()); err != nil {
			t.Errorf("%s: after a line that was too long: %v", version, err)
		}
	}
}

// framingCharacters are what some take for the end of a line, or do not expect
// in a text.
var framingCharacters = []string{"\r", "\n", "\r\n", "\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x00", "\x7f", "\ufeff", "\ufffd", "\U0010ffff", "\\n", "\\u000a", "</script>", "\x1b[2J"}

// TestFault08FramingCharacters: each in every place a text can be, in both
// directions, raw and escaped where JSON allows both.
func TestFault08FramingCharacters(t *testing.T) {
	shows(t, "stdio.framing", "transport.utf8")
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "echo", func(_ context.Context, req *Request) (*CallToolResult, error) {
		text := rawString(req.Arguments, "s")
		req.Progress(context.Background(), ProgressParams{Progress: 1, Message: text})
		return &CallToolResult{Content: []Content{Text(text)}, StructuredContent: json.RawMessage("{\n\"s\":\r\n" + string(appendString(nil, text)) + "\n}\n"), Meta: Meta{"a/b": json.RawMessage("[\n1]")}}, nil
	})
	s.Handle("x/raw", func(_ context.Context, req *Request) (any, error) {
		return json.RawMessage("{\r\n\t\"params\":\n" + string(req.Params) + "\n}"), nil
	})
	rawTool(s, "err", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return nil, &Error{Code: 7, Message: rawString(req.Arguments, "s") + ".", Data: json.RawMessage("{\n}")}
	})
	in, out, _ := pipeServer(t, t.Context(), s)
	io.WriteString(in, initializeFrame("0", "2025-11-25", "{}")+"\n")
	readLine(t, out)
	for _, text := range framingCharacters {
		raw := `"` + text + `"` // as it is, where JSON allows it
		if validJSON([]byte(raw)) != nil || strings.Contains(text, `\`) {
			raw = string(appendString(nil, text))
		}
		escaped, _ := json.Marshal(text)
		for _, quoted := range []string{raw, string(escaped)} {
			args := `"arguments":{"s":` + quoted + `},"_meta":{"progressToken":` + quoted + `}`
			for _, end := range []string{"\n", "\r\n", " \t\r\n"} {
				io.WriteString(in, request("1", "tools/call", `"name":"echo",`+args)+end)
				progress, answer := readLine(t, out), readLine(t, out)
				for _, got := range []string{memberOf(t, progress, "params", "message"), memberOf(t, progress, "params", "progressToken"), memberOf(t, answer, "result", "structuredContent", "s")} {
					if back, ok := stringValue([]byte(got)); !ok || back != text {
						t.Errorf("%q became %s", text, got)
					}
				}
			}
			for _, frame := range []string{request(quoted, "x/raw", `"s":`+quoted), request(quoted, "tools/call", `"name":"err",`+args), request(quoted, "tools/call", `"name":`+quoted), request(quoted, "prompts/get", `"name":"greet","arguments":{"name":`+quoted+`}`)} {
				io.WriteString(in, frame+"\n")
				if back, ok := stringValue([]byte(memberOf(t, readLine(t, out), "id"))); !ok || back != text {
					t.Errorf("the id %q became %q", text, back)
				}
			}
		}
	}
}

// A byte order mark before a message is passed over, on either side; within
// one it is a fault of that message only.
func TestFault08ByteOrderMark(t *testing.T) {
	shows(t, "stdio.framing")
	leakCheck(t)
	const mark, ping = "\xef\xbb\xbf", `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	in, out, _ := pipeServer(t, t.Context(), testServer(nil))
	for _, line := range []string{mark + ping, ping, mark + ping + "\r", mark + " " + ping} {
		io.WriteString(in, line+"\n")
		fits(t, readLine(t, out), `{"id":1,"result":{}}`)
	}
	io.WriteString(in, mark+"\n"+mark+"\r\n") // blank
	io.WriteString(in, `{"jsonrpc":`+mark+"\n")
	fits(t, readLine(t, out), `{"id":null,"error":{"code":-32700}}`)
	conn, _ := streamOver(t, strings.NewReader(mark+"1\n"+strings.Repeat("x", 10)+mark+"\n"+mark+"2"), 10)
	if got := strings.Join(readFrames(t, conn), " "); got != "1 !-32600 2" {
		t.Errorf("read %q", got)
	}
}

// TestFault09IDsInUse: an id that is in use, whatever uses it, is refused and
// harms nothing; when the first has ended it is free.
func TestFault09IDsInUse(t *testing.T) {
	shows(t, "errors.invalid-request", "subs.concurrent")
	leakCheck(t)
	c, _ := dialServer(t, testServer(nil))
	c.send(listenFrame(`7`, `{"toolsListChanged":true}`))
	fits(t, c.next(), `{"method":"notifications/subscriptions/acknowledged"}`)
	for _, frame := range []string{listenFrame(`7`, `{"toolsListChanged":true}`), modernRequest("7", "tools/list", "", "{}"), request("7", "ping", "")} {
		fits(t, c.call(frame), `{"id":7,"error":{"code":-32600}}`)
	}
	fits(t, c.call(listenFrame(`"7"`, `{"toolsListChanged":true}`)), `{"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"7"}}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	waitUntil(t, "the id is free", func() bool { return bad(c.call(request("7", "ping", ""))) == "" })
}

// The client's side: two questions with one id.
func TestFault09ClientRefusesIDsInUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := answering()
		opts.Roots = func(context.Context) ([]Root, error) { time.Sleep(time.Second); return nil, nil }
		_, s := connected(t, Version20251125, opts, silent)
		for range 2 {
			s.send(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`, `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":"7","method":"ping"}`)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			last := slices.Clone(s.raw[len(s.raw)-3:])
			slices.Sort(last)
			fits(t, "["+strings.Join(last, ",")+"]", `[{"id":"7","result":{}},{"id":7,"error":{"code":-32600}},{"id":7,"result":{"roots":[]}}]`)
		}
	})
}

// TestFault10Interleaving lets many write large frames at once on both sides
// of a byte stream: results, progress, log messages, changes, questions.
func TestFault10Interleaving(t *testing.T) {
	shows(t, "stdio.framing", "stateless.interleaving")
	for _, version := range []string{Version20251125, Version20260728} {
		leakCheck(t)
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		s := testServer(nil)
		pad := strings.Repeat("é", 100<<10)
		rawTool(s, "big", func(ctx context.Context, req *Request) (*CallToolResult, error) {
			req.Progress(ctx, ProgressParams{Progress: 1, Message: pad})
			req.Log().Error(pad)
			_, err := req.Elicit(ctx, "k", &ElicitParams{Message: pad, RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
			return textResult("%d %s", len(req.Arguments), pad), err
		})
		ss, err := s.Connect(t.Context(), &Stream{Reader: serverIn, Writer: serverOut})
		if err != nil {
			t.Fatal(err)
		}
		opts := answering()
		opts.Versions = []string{version}
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(t.Context(), &Stream{Reader: clientIn, Writer: clientOut})
		if err != nil {
			t.Fatal(err)
		}
		cs.SetLogLevel(t.Context(), "error")
		var wg sync.WaitGroup
		for range 20 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				n := 0
				view := cs.With(CallOptions{Progress: func(p ProgressParams) { n += len(p.Message) }})
				text, err := CallTool[string](t.Context(), view, "big", map[string]string{"a": pad})
				if err != nil || text != fmt.Sprintf("%d %s", len(pad)+len(`{"a":""}`), pad) || n == 0 || n%len(pad) != 0 {
					t.Errorf("%s: %d bytes, progress of %d, %v", version, len(text), n, err)
				}
				s.RemoveTools("none")
				rawTool(s, "more", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
			}()
		}
		wg.Wait()
		cs.Close()
		if err := ss.Wait(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
