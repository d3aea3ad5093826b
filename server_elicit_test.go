package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// askServer is a server whose tool "ask" asks q and answers with what came of it.
func askServer(opts *ServerOptions, q func(ctx context.Context, req *Request) (any, error)) *Server {
	s := emptyServer(opts)
	rawTool(s, "ask", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		answer, err := q(ctx, req)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(answer)
		return textResult("%s", text), err
	})
	return s
}

func elicitsTool(p ElicitParams) func(context.Context, *Request) (any, error) {
	return func(ctx context.Context, req *Request) (any, error) { return req.Elicit(ctx, "q", &p) }
}

// askedBy returns the params that the tool's question is sent with; "" and
// the answer of the call if nothing is asked.
func askedBy(t *testing.T, s *Server, version, capabilities string) (params, answer string) {
	t.Helper()
	_, ask := opened(t, s, version, capabilities)
	got := ask("1", "tools/call", `"name":"ask"`)
	if params = memberOf(t, got, "params"); params == "" {
		params = memberOf(t, got, "result", "inputRequests", "q", "params")
	}
	return params, got
}

// exactly checks that a JSON value is another one, all of it.
func exactly(t *testing.T, got, want string) {
	t.Helper()
	if got == "" || !sameJSON([]byte(got), []byte(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A form that a client may not be able to show is an error of the handler,
// which says where, and is not sent.
func TestFormsKeepTheRules(t *testing.T) {
	shows(t, "elicit.form.flat", "elicit.form.formats", "elicit.form.schema", "elicit.message")
	leakCheck(t)
	fields := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	for schema, want := range map[string]string{
		fields(`"a":{"type":"object"}`):                                 "requestedSchema.properties.a must have one type",
		fields(`"a":{"type":"null"}`):                                   "requestedSchema.properties.a must have one type",
		fields(`"a":{"type":["string","null"]}`):                        "requestedSchema.properties.a must have one type",
		fields(`"a":true`):                                              "requestedSchema.properties.a must have one type",
		fields(`"a":{"enum":["x"]}`):                                    "requestedSchema.properties.a must have one type",
		fields(`"a":{"type":"string","format":"regex"}`):                `requestedSchema.properties.a.format "regex" must be email`,
		fields(`"a":{"type":"string","format":"uri-reference"}`):        "must be email, uri, date or date-time",
		fields(`"a":{"type":"string","enum":[1]}`):                      "the values of an enum must be strings",
		fields(`"a":{"type":"string","oneOf":[{"const":"x"}]}`):         "the strings const and title",
		fields(`"a":{"type":"string","oneOf":[{"type":"string"}]}`):     "the strings const and title",
		fields(`"a":{"type":"string","anyOf":[{"type":"string"}]}`):     "requestedSchema.properties.a.anyOf is not for",
		fields(`"a":{"type":"number","format":"email"}`):                "requestedSchema.properties.a.format is not for",
		fields(`"a":{"type":"boolean","minimum":1}`):                    "requestedSchema.properties.a.minimum is not for",
		fields(`"a":{"type":"array"}`):                                  "requestedSchema.properties.a.items must have",
		fields(`"a":{"type":"array","items":{"type":"string"}}`):        "requestedSchema.properties.a.items must have",
		fields(`"a":{"type":"array","items":{"type":"object"}}`):        "requestedSchema.properties.a.items must have",
		fields(`"a":{"type":"array","items":{"properties":{}}}`):        "requestedSchema.properties.a.items.properties",
		fields(`"a":{"type":"array","items":{"anyOf":[{"const":1}]}}`):  "the strings const and title",
		`{"type":"array"}`:                                              `requestedSchema must have "type": "object"`,
		`{"properties":{}}`:                                             `requestedSchema must have "type": "object"`,
		`{"type":"object","required":["b"],"properties":{}}`:            `requestedSchema.required: there is no property "b"`,
		`{"type":"object","allOf":[]}`:                                  "requestedSchema",
		`{"type":"object","allOf":[{}]}`:                                "requestedSchema.allOf: a form is nothing but properties",
		`{"type":"object","additionalProperties":{"type":"object"}}`:    "requestedSchema.additionalProperties",
		`{"type":"object","patternProperties":{"a":{"type":"string"}}}`: "requestedSchema.patternProperties",
		`{"type":"object","properties":{"a":{"type":"str"}}}`:           "requestedSchema",
		`{"type":"object","properties":[]}`:                             "requestedSchema",
		`{"type":"object","required":"a"}`:                              "requestedSchema",
		`{"type":"object"`:                                              "requestedSchema",
		`[]`:                                                            "requestedSchema",
	} {
		s := askServer(nil, elicitsTool(ElicitParams{Message: "m", RequestedSchema: json.RawMessage(schema)}))
		for _, version := range []string{"2025-11-25", "2026-07-28", "2025-06-18"} {
			params, answer := askedBy(t, s, version, `{"elicitation":{}}`)
			if version == "2025-06-18" { // where some fields break another rule
				want = "requestedSchema"
			}
			if params != "" || memberOf(t, answer, "result", "isError") != "true" || !strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), want) {
				t.Errorf("%s: %s: %s, want %q", version, schema, answer, want)
			}
		}
	}
	params, answer := askedBy(t, askServer(nil, elicitsTool(ElicitParams{})), "2025-11-25", `{"elicitation":{}}`)
	if params != "" || !strings.Contains(answer, "message must say why") {
		t.Errorf("without a message: %s", answer)
	}
	params, answer = askedBy(t, askServer(nil, elicitsTool(ElicitParams{Mode: "voice", Message: "m"})), "2026-07-28", `{"elicitation":{}}`)
	if params != "" || !strings.Contains(answer, "mode") {
		t.Errorf("an unknown mode: %s", answer)
	}
}

func TestFormsAreSentAsTheyAre(t *testing.T) {
	shows(t, "elicit.form.flat", "elicit.form.schema", "elicit.message")
	leakCheck(t)
	const since06 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string","minLength":1,"format":"date-time","title":"A"},"b":{"type":"integer","minimum":1,"default":2},"c":{"type":"boolean"},"d":{"type":"string","enum":["x"],"enumNames":["X"]},"e":{"type":"number"},"f":{"type":"string","pattern":"^a"}},"required":["a"],"additionalProperties":false}`
	const since25 = `{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]},"b":{"type":"array","minItems":1,"items":{"type":"string","enum":["x"]}},"c":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]},"default":["x"]}}}`
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		params, _ := askedBy(t, askServer(nil, elicitsTool(ElicitParams{Mode: "form", Message: "m", RequestedSchema: json.RawMessage(since06)})), version, `{"elicitation":{}}`)
		mode := `"mode":"form",`
		if version == "2025-06-18" {
			mode = ""
		}
		exactly(t, params, `{`+mode+`"message":"m","requestedSchema":`+since06+`}`)
		params, answer := askedBy(t, askServer(nil, elicitsTool(ElicitParams{Message: "m", RequestedSchema: json.RawMessage(since25)})), version, `{"elicitation":{}}`)
		if version != "2025-06-18" {
			exactly(t, params, `{"message":"m","requestedSchema":`+since25+`}`)
		} else if params != "" || !strings.Contains(answer, "since 2025-11-25") {
			t.Errorf("%s: %s", version, answer)
		}
		params, _ = askedBy(t, askServer(nil, elicitsTool(ElicitParams{Message: "m"})), version, `{"elicitation":{}}`)
		exactly(t, params, `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`)
	}
}

// What the client did not declare is not asked for, in either era and whether
// the handler uses Elicit or makes the question itself.
func TestUndeclaredQuestionsAreNotSent(t *testing.T) {
	shows(t, "elicit.mode.undeclared", "elicit.caps.empty-is-form", "caps.respect", "roots.server.check-caps", "sampling.tools.undeclared", "mrtr.caps")
	leakCheck(t)
	page := ElicitParams{Message: "m", URL: "https://x/y"}
	sample := func(p CreateMessageParams) func(context.Context, *Request) (any, error) {
		p.Messages = []SamplingMessage{{Role: "user", Content: []Content{Text("hi")}}}
		return func(ctx context.Context, req *Request) (any, error) { return req.Sample(ctx, "q", &p) }
	}
	for name, c := range map[string]struct {
		capabilities, required string
		q                      func(context.Context, *Request) (any, error)
	}{
		"no elicitation": {`{}`, `{"elicitation":{"form":{}}}`, elicitsTool(ElicitParams{Message: "m"})},
		"form by url":    {`{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`, elicitsTool(ElicitParams{Message: "m"})},
		"url by none":    {`{"elicitation":{}}`, `{"elicitation":{"url":{}}}`, elicitsTool(page)},
		"url by form":    {`{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`, elicitsTool(page)},
		"returned": {`{"elicitation":{}}`, `{"elicitation":{"url":{}}}`, func(context.Context, *Request) (any, error) {
			return nil, &InputRequired{Requests: InputRequests{"q": {Method: methodElicit, Params: json.RawMessage(`{"mode":"url","message":"m","url":"https://x/y"}`)}}}
		}},
		"roots":    {`{"elicitation":{}}`, `{"roots":{}}`, func(ctx context.Context, req *Request) (any, error) { return req.Roots(ctx, "q") }},
		"sampling": {`{"roots":{}}`, `{"sampling":{}}`, sample(CreateMessageParams{})},
		"tools":    {`{"sampling":{}}`, `{"sampling":{"tools":{}}}`, sample(CreateMessageParams{Tools: []Tool{}})},
		"choice":   {`{"sampling":{"context":{}}}`, `{"sampling":{"tools":{}}}`, sample(CreateMessageParams{ToolChoice: &ToolChoice{Mode: "none"}})},
	} {
		for _, version := range []string{"2025-06-18", "2025-11-25"} {
			params, answer := askedBy(t, askServer(nil, c.q), version, c.capabilities)
			if version == "2025-06-18" && name == "form by url" { // which has no modes
				continue
			}
			// Its text says what is missing. When it was returned the handler never hears of it.
			missing := strings.ReplaceAll("did not declare "+c.required, `"`, `\"`)
			if name == "returned" {
				missing = `"code":-32603`
			}
			if params != "" || !strings.Contains(answer, missing) {
				t.Errorf("%s %s: %s", version, name, answer)
			}
		}
		_, answer := askedBy(t, askServer(nil, c.q), "2026-07-28", c.capabilities)
		fits(t, answer, `{"error":{"code":-32021,"data":{"requiredCapabilities":`+c.required+`}}}`)
	}
}

func TestPagesAreSentAsEachRevisionHasThem(t *testing.T) {
	shows(t, "elicit.url.params", "elicit.url.params-2025", "elicit.url.valid", "elicit.url.https", "elicit.message")
	leakCheck(t)
	const both = `{"elicitation":{"form":{},"url":{}}}`
	for _, address := range []string{"", "not a url", "/a", "x", "https://", "http:///a", "https://a b", "https://a/b c", "https://x\n", "://x", "https://[::1", "//x/y"} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			params, answer := askedBy(t, askServer(nil, elicitsTool(ElicitParams{Mode: "url", Message: "m", URL: address})), version, both)
			if params != "" || !strings.Contains(answer, "is not a valid absolute URL") {
				t.Errorf("%s %q: %s", version, address, answer)
			}
		}
	}
	for address, warned := range map[string]bool{
		"https://x/y?z=1#a": false, "http://localhost:8080/": false, "http://127.0.0.9/": false, "http://[::1]:1/": false, "http://a.localhost/": false,
		"http://example.com/": true, "http://localhost.example.com/": true, "http://128.0.0.1": true, "app:thing": true,
	} {
		var log bytes.Buffer
		s := askServer(&ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, elicitsTool(ElicitParams{Message: "m", URL: address, ElicitationID: "id " + address}))
		params, _ := askedBy(t, s, "2025-11-25", both)
		exactly(t, params, `{"mode":"url","message":"m","url":"`+address+`","elicitationId":"id `+address+`"}`)
		if strings.Contains(log.String(), "should use https") != warned {
			t.Errorf("%s: %s", address, &log)
		}
		params, _ = askedBy(t, s, "2026-07-28", both)
		exactly(t, params, `{"mode":"url","message":"m","url":"`+address+`"}`)
		raw := askServer(nil, func(context.Context, *Request) (any, error) {
			return nil, &InputRequired{Requests: InputRequests{"q": {Method: methodElicit, Params: json.RawMessage(`{"mode":"url","message":"m","url":"` + address + `","elicitationId":"x"}`)}}}
		})
		params, _ = askedBy(t, raw, "2026-07-28", both)
		exactly(t, params, `{"mode":"url","message":"m","url":"`+address+`"}`)
	}
}

func TestElicitationIDsAreUnique(t *testing.T) {
	shows(t, "elicit.url.id-unique")
	leakCheck(t)
	s := emptyServer(nil)
	rawTool(s, "ask", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		var id string
		json.Unmarshal(rawMember(req.Arguments, "id"), &id)
		a, err := req.Elicit(ctx, "q", &ElicitParams{Message: "m", URL: "https://x/y", ElicitationID: id})
		if err != nil {
			return nil, err
		}
		return textResult("%s", a.Action), nil
	})
	seen := map[string]bool{}
	const caps = `{"elicitation":{"url":{}}}`
	c, ask := opened(t, s, "2025-11-25", caps)
	oc, other := opened(t, s, "2025-11-25", caps)
	for i := range 50 {
		id := memberOf(t, ask(fmt.Sprint(i), "tools/call", `"name":"ask"`), "params", "elicitationId")
		if len(id) < 10 || seen[id] {
			t.Fatalf("id %s", id)
		}
		seen[id] = true
	}
	mine := ask("100", "tools/call", `"name":"ask","arguments":{"id":"mine"}`)
	fits(t, mine, `{"params":{"elicitationId":"mine"}}`)
	again := other("1", "tools/call", `"name":"ask","arguments":{"id":"mine"}`)
	fits(t, again, `{"result":{"isError":true,"content":[{"text":"mcp: elicitation/create: elicitationId \"mine\" is in use"}]}}`)
	// One that the user did not want is free again.
	c.send(`{"jsonrpc":"2.0","id":` + memberOf(t, mine, "id") + `,"result":{"action":"decline"}}`)
	fits(t, c.next(), `{"id":100,"result":{"content":[{"text":"decline"}]}}`)
	theirs := other("2", "tools/call", `"name":"ask","arguments":{"id":"mine"}`)
	fits(t, theirs, `{"params":{"elicitationId":"mine"}}`)
	// So is one that the client could not show.
	oc.send(`{"jsonrpc":"2.0","id":` + memberOf(t, theirs, "id") + `,"error":{"code":-32603,"message":"no window"}}`)
	fits(t, oc.next(), `{"id":2,"result":{"isError":true}}`)
	mine = ask("101", "tools/call", `"name":"ask","arguments":{"id":"mine"}`)
	fits(t, mine, `{"params":{"elicitationId":"mine"}}`)
	// Until the page is done its client may be sent there again.
	c.send(`{"jsonrpc":"2.0","id":` + memberOf(t, mine, "id") + `,"result":{"action":"accept"}}`)
	fits(t, c.next(), `{"id":101,"result":{"content":[{"text":"accept"}]}}`)
	fits(t, ask("102", "tools/call", `"name":"ask","arguments":{"id":"mine"}`), `{"params":{"elicitationId":"mine"}}`)
}

// What a handler asks after the end of its session leaves nothing behind.
func TestPagesOfTheDeadAreNotKept(t *testing.T) {
	leakCheck(t)
	asked := make(chan error, 1)
	s := askServer(nil, func(ctx context.Context, req *Request) (any, error) {
		req.Session().Close()
		_, err := req.Elicit(context.WithoutCancel(ctx), "q", &ElicitParams{Message: "m", URL: "https://x/y", ElicitationID: "id"})
		asked <- err
		return nil, err
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-11-25", `{"elicitation":{"url":{}}}`)
	c.send(request("1", "tools/call", `"name":"ask"`))
	if err := soon(t, "the answer", asked); !errors.Is(err, ErrClosed) || len(s.pages) != 0 {
		t.Errorf("%v, %d pages are open", err, len(s.pages))
	}
}

// The end of what a page asked for is told to the client that was sent there,
// once; nobody else's id will do.
func TestCompletedPagesAreToldToTheirClient(t *testing.T) {
	shows(t, "elicit.url.complete.id", "elicit.url.complete.target")
	leakCheck(t)
	s := askServer(nil, func(ctx context.Context, req *Request) (any, error) {
		return req.Elicit(ctx, "q", &ElicitParams{Message: "m", URL: "https://x/y", ElicitationID: "id-1"})
	})
	const caps = `{"elicitation":{"url":{}}}`
	c, ss := dialServer(t, s)
	c.initialize("2025-11-25", caps)
	other, otherSS := dialServer(t, s)
	other.initialize("2025-11-25", caps)
	got := c.call(request("1", "tools/call", `"name":"ask"`))
	c.send(`{"jsonrpc":"2.0","id":` + memberOf(t, got, "id") + `,"result":{"action":"accept","content":{"x":1}}}`)
	fits(t, c.next(), `{"id":1,"result":{"content":[{"text":"{\"action\":\"accept\"}"}]}}`)
	ctx := context.Background()
	for _, wrong := range []error{otherSS.ElicitationComplete(ctx, "id-1"), ss.ElicitationComplete(ctx, "id-2"), ss.ElicitationComplete(ctx, "")} {
		if wrong == nil {
			t.Error("completed what is not there")
		}
	}
	if err := ss.ElicitationComplete(ctx, "id-1"); err != nil {
		t.Error(err)
	}
	if got, want := c.next(), `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"id-1"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if ss.ElicitationComplete(ctx, "id-1") == nil {
		t.Error("completed twice")
	}
	other.alive()
	c.alive()
	// Memory of pages is bounded, and ends with the session.
	for i := range maxOpenPages + 5 {
		if err := ss.openPage(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(ss.pages) != maxOpenPages || len(s.pages) != maxOpenPages || ss.ElicitationComplete(ctx, "4") == nil {
		t.Errorf("%d and %d pages", len(ss.pages), len(s.pages))
	}
	ss.Close()
	if s.mu.Lock(); len(s.pages) != 0 {
		t.Errorf("%d pages of nobody", len(s.pages))
	}
	s.mu.Unlock()
}

// What the user answered is checked; only an accepted form has content.
func TestAnswersOfUsersAreChecked(t *testing.T) {
	shows(t, "elicit.form.server-validate", "elicit.decline", "mrtr.server.validate", "mrtr.server.protocol-error", "sampling.validate")
	leakCheck(t)
	form := ElicitParams{Message: "m", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":5},"d":{"type":"string","format":"date"}},"required":["n"]}`)}
	sample := func(ctx context.Context, req *Request) (any, error) {
		return req.Sample(ctx, "q", &CreateMessageParams{Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("hi")}}}, MaxTokens: 1})
	}
	roots := func(ctx context.Context, req *Request) (any, error) { return req.Roots(ctx, "q") }
	for _, c := range []struct {
		q      func(context.Context, *Request) (any, error)
		answer string
		want   string // "" for one that does not fit
	}{
		{elicitsTool(form), `{"action":"accept","content":{"n":5}}`, `{"action":"accept","content":{"n":5}}`},
		{elicitsTool(form), `{"action":"accept","content":{"n":6}}`, ""},
		{elicitsTool(form), `{"action":"accept","content":{"n":"5"}}`, ""},
		{elicitsTool(form), `{"action":"accept","content":{"n":1,"d":"tomorrow"}}`, ""},
		{elicitsTool(form), `{"action":"accept","content":{}}`, ""}, {elicitsTool(form), `{"action":"accept"}`, ""}, {elicitsTool(form), `{"action":"accept","content":[]}`, ""},
		{elicitsTool(form), `{"action":"Accept","content":{"n":5}}`, ""}, {elicitsTool(form), `{"content":{"n":5}}`, ""}, {elicitsTool(form), `{}`, ""}, {elicitsTool(form), `null`, ""}, {elicitsTool(form), `[]`, ""},
		{elicitsTool(form), `{"action":"decline"}`, `{"action":"decline"}`}, {elicitsTool(form), `{"action":"cancel","content":{"n":"no"}}`, `{"action":"cancel"}`},
		{elicitsTool(ElicitParams{Message: "m", URL: "https://x/y"}), `{"action":"accept","content":{"n":5}}`, `{"action":"accept"}`},
		{roots, `null`, ""}, {roots, `{"roots":null}`, ""}, {roots, `{"roots":[null]}`, ""}, {roots, `{}`, ""}, {roots, `{"roots":[{"name":"x"}]}`, ""}, {roots, `{"roots":{}}`, ""},
		{roots, `{"roots":[]}`, `[]`}, {roots, `{"roots":[{"uri":"file:///a"}]}`, `[{"uri":"file:///a"}]`},
		{sample, `null`, ""}, {sample, `{"role":"system","content":{"type":"text","text":"x"},"model":"m"}`, ""}, {sample, `{"role":"assistant","content":[],"model":"m"}`, ""},
		{sample, `{"role":"assistant","content":{"type":"image","data":"AA=="},"model":"m"}`, ""}, {sample, `{"role":"assistant","content":null,"model":"m"}`, ""},
		{sample, `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"custom"}`, `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"custom"}`},
	} {
		const caps = `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`
		quoted, _ := json.Marshal(c.want)
		result := `{"result":{"isError":null,"content":[{"text":` + string(quoted) + `}]}}`
		w, ask := opened(t, askServer(nil, c.q), "2025-11-25", caps)
		id := memberOf(t, ask("9", "tools/call", `"name":"ask"`), "id")
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + c.answer + `}`)
		if c.want == "" {
			result = `{"id":9,"result":{"isError":true}}`
		}
		fits(t, w.next(), result)
		_, ask = opened(t, askServer(nil, c.q), "2026-07-28", caps)
		if c.want == "" {
			result = `{"error":{"code":-32602}}`
		}
		fits(t, ask("1", "tools/call", `"name":"ask","inputResponses":{"q":`+c.answer+`}`), result)
		if t.Failed() {
			t.Fatal(c.answer)
		}
	}
	// A client that cannot is no success either.
	w, ask := opened(t, askServer(nil, elicitsTool(form)), "2025-11-25", `{"elicitation":{}}`)
	id := memberOf(t, ask("9", "tools/call", `"name":"ask"`), "id")
	w.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"no window"}}`)
	fits(t, w.next(), `{"id":9,"result":{"isError":true}}`)
}

// That the user accepts to go to a page is not that something was done there.
func TestAcceptedPagesAreAskedForAgain(t *testing.T) {
	shows(t, "elicit.result.accept-not-done", "elicit.url.error.only", "elicit.url.error.list", "elicit.url.error.url-mode")
	leakCheck(t)
	done := false
	s := askServer(&ServerOptions{MaxRounds: 3}, func(context.Context, *Request) (any, error) {
		if !done {
			return nil, URLElicitationRequired(ElicitParams{Message: "m", URL: "https://x/y"}, ElicitParams{Message: "n", URL: "https://x/z", ElicitationID: "z"})
		}
		return "done", nil
	})
	const caps = `{"elicitation":{"url":{}}}`
	c, ss := dialServer(t, s)
	c.initialize("2025-11-25", caps)
	var got string
	for range 2 { // the second time, too, as long as the page is not done
		c.send(request("1", "tools/call", `"name":"ask"`))
		got = frameOf(t, c)
		fits(t, got, `{"error":{"code":-32042,"data":{"elicitations":[{"mode":"url","message":"m","url":"https://x/y"},{"mode":"url","message":"n","url":"https://x/z","elicitationId":"z"}]}}}`)
	}
	if strings.Count(got, `"elicitationId":"`) != 2 {
		t.Error(got)
	}
	if err := ss.ElicitationComplete(context.Background(), "z"); err != nil {
		t.Error(err)
	}
	fits(t, c.next(), `{"method":"notifications/elicitation/complete","params":{"elicitationId":"z"}}`)

	_, ask := opened(t, s, "2026-07-28", caps)
	answer := ""
	for range 3 {
		got = ask("1", "tools/call", `"name":"ask"`+answer)
		fits(t, got, `{"result":{"resultType":"input_required","inputRequests":{"url-0":{"method":"elicitation/create","params":{"mode":"url","url":"https://x/y","elicitationId":null}},"url-1":{"params":{"url":"https://x/z"}}}}}`)
		answer = `,"inputResponses":{"url-0":{"action":"accept"},"url-1":{"action":"accept"}},"requestState":` + memberOf(t, got, "result", "requestState")
	}
	fits(t, ask("1", "tools/call", `"name":"ask"`+answer), `{"error":{"code":-32603}}`) // too often
	refused := strings.ReplaceAll(answer, `"url-1":{"action":"accept"}`, `"url-1":{"action":"cancel"}`)
	fits(t, ask("1", "tools/call", `"name":"ask"`+refused), `{"result":{"isError":true,"content":[{"text":"the user did not open the page that the request needs"}]}}`)
	done = true
	fits(t, ask("1", "tools/call", `"name":"ask"`+answer), `{"result":{"resultType":"complete","content":[{"text":"\"done\""}]}}`)
}

// frameOf reads a frame whose code need not be one of 2026-07-28.
func frameOf(t *testing.T, c *wireClient) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	frame, err := c.conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(frame)
}

// The code for pages is sent only where the revision has it, the client
// declared pages, and there are some.
func TestRequiredPagesElsewhere(t *testing.T) {
	shows(t, "elicit.url.error.only")
	leakCheck(t)
	page := URLElicitationRequired(ElicitParams{Message: "m", URL: "https://x/y"})
	for _, c := range []struct {
		version, capabilities string
		err                   error
		code                  string
	}{
		{"2025-06-18", `{"elicitation":{}}`, page, "-32603"}, {"2025-11-25", `{"elicitation":{}}`, page, "-32603"}, {"2024-11-05", `{}`, page, "-32603"},
		{"2026-07-28", `{"elicitation":{}}`, page, "-32021"},
		{"2025-11-25", `{"elicitation":{"url":{}}}`, URLElicitationRequired(), "-32603"}, {"2025-11-25", `{"elicitation":{"url":{}}}`, Errorf(-32042, "x"), "-32603"},
		{"2025-11-25", `{"elicitation":{"url":{}}}`, URLElicitationRequired(ElicitParams{Message: "m", URL: "x"}), "-32603"},
		{"2025-11-25", `{"elicitation":{"url":{}}}`, URLElicitationRequired(ElicitParams{URL: "https://x/"}), "-32603"},
		{"2026-07-28", `{"elicitation":{"url":{}}}`, Errorf(-32042, "x"), "-32603"},
	} {
		s := askServer(nil, func(context.Context, *Request) (any, error) { return nil, c.err })
		s.Handle("test/any", func(context.Context, *Request) (any, error) { return nil, c.err })
		s.Handle("test/middle", func(context.Context, *Request) (any, error) { return nil, nil })
		s.Use(func(next Handler) Handler {
			return func(ctx context.Context, req *Request) (any, error) {
				if req.Method == "test/middle" {
					return nil, page
				}
				return next(ctx, req)
			}
		})
		w, ask := opened(t, s, c.version, c.capabilities)
		fits(t, ask("1", "tools/call", `"name":"ask"`), `{"error":{"code":`+c.code+`}}`)
		fits(t, ask("2", "test/any", ""), `{"error":{"code":-32603}}`)
		if c.version != "2025-11-25" {
			fits(t, ask("3", "test/middle", ""), `{"error":{"code":-32603}}`)
		}
		w.send()
	}
	if !errors.Is(page, &Error{Code: CodeURLElicitationRequired}) {
		t.Error(page)
	}
}

// A revision without a method says so, whatever the client would declare.
func TestQuestionsThatARevisionDoesNotHave(t *testing.T) {
	shows(t, "caps.respect")
	leakCheck(t)
	for _, version := range []string{"2024-11-05", "2025-03-26"} {
		params, answer := askedBy(t, askServer(nil, elicitsTool(ElicitParams{Message: "m"})), version, `{"elicitation":{}}`)
		if params != "" || !strings.Contains(answer, "of protocol version "+version+" cannot be asked for elicitation/create") {
			t.Errorf("%s: %s", version, answer)
		}
	}
}
