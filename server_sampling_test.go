package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// sampleTool asks the model p.
func sampleTool(p CreateMessageParams) func(context.Context, *Request) (any, error) {
	return func(ctx context.Context, req *Request) (any, error) { return req.Sample(ctx, "q", &p) }
}

const toolSampling = `{"sampling":{"tools":{},"context":{}}}`

func turn(role Role, blocks ...Content) SamplingMessage {
	return SamplingMessage{Role: role, Content: blocks}
}

func use(id string) Content { return Content{Type: "tool_use", ID: id, Name: "t"} }

func useResult(id, structured string) Content {
	c := Content{Type: "tool_result", ToolUseID: id, Content: []Content{Text("r")}}
	if structured != "" {
		c.StructuredContent = json.RawMessage(structured)
	}
	return c
}

// A conversation that breaks a rule is an error of the handler, which says
// where, and is not sent.
func TestConversationsKeepTheRules(t *testing.T) {
	shows(t, "sampling.message.shape", "sampling.result.balance", "sampling.result.only", "sampling.result.schema", "sampling.validate")
	leakCheck(t)
	tools := []Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object","required":["x"]}`)}}
	hi := turn("user", Text("hi"))
	two := 2.0
	for _, c := range []struct {
		p    CreateMessageParams
		want string // "" for one that is sent
	}{
		{CreateMessageParams{Messages: []SamplingMessage{turn("system", Text("x"))}}, `messages[0].role "system"`},
		{CreateMessageParams{Messages: []SamplingMessage{hi, turn("", Text("x"))}}, `messages[1].role ""`},
		{CreateMessageParams{Messages: []SamplingMessage{turn("user")}}, "messages[0].content must have a block"},
		{CreateMessageParams{Messages: []SamplingMessage{turn("user", Content{Type: "image", Data: []byte{1}})}}, "mimeType of image"},
		{CreateMessageParams{Messages: []SamplingMessage{turn("user", ResourceLink(Resource{URI: "a:b", Name: "b"}))}}, `type "resource_link"`},
		{CreateMessageParams{Messages: []SamplingMessage{turn("user", use("1"))}}, "tool_use belongs to the assistant"},
		{CreateMessageParams{Messages: []SamplingMessage{turn("assistant", useResult("1", ""))}}, "tool_result belongs to the user"},
		{CreateMessageParams{Messages: []SamplingMessage{hi, turn("assistant", use("1"))}}, "lacks the results"},
		{CreateMessageParams{Messages: []SamplingMessage{hi, turn("assistant", use("1")), hi}}, "lacks the result"},
		{CreateMessageParams{Messages: []SamplingMessage{hi, turn("assistant", use("1"), use("2")), turn("user", useResult("1", ""))}}, "lacks the result"},
		{CreateMessageParams{Messages: []SamplingMessage{hi, turn("assistant", use("1")), hi, turn("user", useResult("1", ""))}}, "lacks the result"},
		{CreateMessageParams{Messages: []SamplingMessage{turn("user", useResult("1", ""))}}, "no tool use before it"},
		{CreateMessageParams{Messages: []SamplingMessage{hi, turn("assistant", use("1")), turn("user", useResult("1", ""), Text("and"))}}, "mixes"},
		{CreateMessageParams{Tools: tools, Messages: []SamplingMessage{hi, turn("assistant", use("1")), turn("user", useResult("1", `{"y":1}`))}}, "outputSchema"},
		{CreateMessageParams{Messages: []SamplingMessage{hi}, IncludeContext: "all"}, "includeContext"},
		{CreateMessageParams{Messages: []SamplingMessage{hi}, ToolChoice: &ToolChoice{Mode: "any"}}, "toolChoice.mode"},
		{CreateMessageParams{Messages: []SamplingMessage{hi}, ModelPreferences: &ModelPreferences{CostPriority: &two}}, "modelPreferences"},
		{CreateMessageParams{Tools: tools, Messages: []SamplingMessage{hi, turn("assistant", use("1"), Text("so")), turn("user", useResult("1", `{"x":1}`))}}, ""},
	} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			params, answer := askedBy(t, askServer(nil, sampleTool(c.p)), version, toolSampling)
			if (params == "") != (c.want != "") || !strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), c.want) {
				t.Errorf("%s: want %q: %s", version, c.want, answer)
			}
		}
	}
}

// Context that the client did not declare is not asked for; the question is.
func TestUndeclaredContextIsLeftOut(t *testing.T) {
	shows(t, "sampling.context.undeclared", "sampling.content.array")
	leakCheck(t)
	for _, c := range []struct{ version, capabilities, asked, sent string }{
		{"2025-06-18", `{"sampling":{}}`, "thisServer", `"thisServer"`}, // where there is nothing to declare
		{"2025-11-25", `{"sampling":{}}`, "thisServer", ""}, {"2025-11-25", `{"sampling":{"context":{}}}`, "allServers", `"allServers"`},
		{"2026-07-28", `{"sampling":{"tools":{}}}`, "allServers", ""}, {"2026-07-28", `{"sampling":{"context":{}}}`, "thisServer", `"thisServer"`},
		{"2026-07-28", `{"sampling":{}}`, "none", `"none"`},
	} {
		params, _ := askedBy(t, askServer(nil, sampleTool(CreateMessageParams{IncludeContext: c.asked, MaxTokens: 7, Messages: []SamplingMessage{turn("user", Text("hi"))}})), c.version, c.capabilities)
		fits(t, params, `{"maxTokens":7,"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`)
		if got := memberOf(t, params, "includeContext"); got != c.sent {
			t.Errorf("%s %s: includeContext %s", c.version, c.capabilities, got)
		}
	}
}

// A loop of tool uses: what the model says goes back to it whole, its _meta
// too, and the loop has an end.
func TestToolLoops(t *testing.T) {
	shows(t, "sampling.meta-preserve", "sampling.iterations", "deprecated.still-work")
	leakCheck(t)
	s := askServer(&ServerOptions{MaxRounds: 4}, func(ctx context.Context, req *Request) (any, error) {
		messages := []SamplingMessage{turn("user", Text("hi"))}
		for i := 0; ; i++ {
			r, err := req.Sample(ctx, string(rune('a'+i)), &CreateMessageParams{Messages: messages, MaxTokens: 9, Tools: []Tool{{Name: "t"}}})
			if err != nil {
				return nil, err
			}
			result := useResult(r.Content[0].ID, "")
			result.Meta = Meta{"example.com/r": json.RawMessage("[1]")}
			messages = append(messages, SamplingMessage{Role: r.Role, Content: r.Content}, turn("user", result))
		}
	})
	_, ask := opened(t, s, "2026-07-28", toolSampling)
	more := ""
	for i := range 4 {
		key := string(rune('a' + i))
		got := ask("1", "tools/call", `"name":"ask"`+more)
		if i == 2 {
			fits(t, got, `{"result":{"inputRequests":{"c":{"params":{"messages":[{"role":"user"},{"role":"assistant","content":{"type":"tool_use","id":"a","name":"t","input":{"n":1.0},"_meta":{"example.com/u":{"k":12345678901234567890}}}},
				{"role":"user","content":{"type":"tool_result","toolUseId":"a","_meta":{"example.com/r":[1]}}},{"role":"assistant"},{"role":"user"}]}}}}}`)
		}
		more = `,"requestState":` + memberOf(t, got, "result", "requestState") + `,"inputResponses":{"` + key + `":{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"tool_use","id":"` + key + `","name":"t","input":{"n":1.0},"_meta":{"example.com/u":{"k":12345678901234567890}}}]}}`
	}
	fits(t, ask("1", "tools/call", `"name":"ask"`+more), `{"error":{"code":-32603}}`)
}
