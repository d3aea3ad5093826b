//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What was chosen for other arguments goes along when one is completed, at the
// revisions that know it.
func TestClientCompletionContext(t *testing.T) {
	shows(t, "completion.context")
	everyVersion(t, func(t *testing.T, version string) {
		bubble(t, func(t *testing.T) {
			cs, s := connected(t, version, ClientOptions{}, each(`{"completion":{"values":["a"]}}`))
			r, err := cs.Complete(t.Context(), &CompleteParams{
				Ref:      CompleteReference{Type: "ref/prompt", Name: "p"},
				Argument: CompleteArgument{Name: "second", Value: "a"},
				Context:  &CompleteContext{Arguments: map[string]string{"first": "x"}},
			})
			if err != nil || len(r.Completion.Values) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			want := ""
			if revisionOf(version).atLeast(rev20250618) {
				want = `{"arguments":{"first":"x"}}`
			}
			if got := string(rawMember(s.of(methodComplete)[0].Params, "context")); got != want {
				t.Errorf("context %s", got)
			}
		})
	})
}

// A server that goes on and on with a loop of tools through the client's
// model comes to an end, and every turn has only its own messages.
func TestClientSamplingIterations(t *testing.T) {
	shows(t, "sampling.iterations", "sampling.caps.tools", "sampling.message.no-retain")
	bubble(t, func(t *testing.T) {
		turns := 0
		opts := ClientOptions{
			MaxRounds: 4, Capabilities: &ClientCapabilities{Sampling: &SamplingCapability{Tools: &struct{}{}}},
			Sample: func(_ context.Context, p *CreateMessageParams) (*CreateMessageResult, error) {
				turns++
				if len(p.Messages) != 1 || len(p.Tools) != 1 {
					t.Errorf("turn %d: %+v", turns, p)
				}
				return &CreateMessageResult{Role: "assistant", Model: "m", StopReason: "toolUse",
					Content: []Content{{Type: "tool_use", ID: fmt.Sprint(turns), Name: "t", Input: json.RawMessage(`{}`)}}}, nil
			},
		}
		cs, s := connected(t, Version20260728, opts, roundsOf(`{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"sampling/createMessage",
			"params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}}}`))
		if _, err := cs.CallTool(t.Context(), "x", nil); err == nil || isPeers(err) || !strings.Contains(err.Error(), "4 times") {
			t.Errorf("error %v", err)
		}
		if n := len(s.of(methodToolsCall)); turns != 4 || n != 5 {
			t.Errorf("%d turns, %d requests", turns, n)
		}
	})
}
