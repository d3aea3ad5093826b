//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// undeclared is a server without capabilities that answers everything.
func undeclared(m Message) []string {
	switch {
	case !m.IsRequest():
		return nil
	case m.Method == methodDiscover:
		return []string{resultOf(m, strings.Replace(discovered, declaresAll, `{}`, 1))}
	case m.Method == methodInitialize:
		asked, _ := stringValue(rawMember(m.Params, "protocolVersion"))
		return []string{resultOf(m, strings.Replace(initializedAs(asked), declaresAll, `{}`, 1))}
	case m.Method == methodListen:
		return []string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":` + m.ID.String() + `}}}`}
	}
	return []string{resultOf(m, `{"resultType":"complete","tools":[],"prompts":[],"resources":[],"resourceTemplates":[],"content":[],"contents":[],"messages":[],"completion":{"values":[]}}`)}
}

// What the server did not declare is not asked for, unless the caller insists.
func TestClientRespectsCapabilities(t *testing.T) {
	shows(t, "caps.respect", "prompts.caps-respect", "lifecycle.op.capabilities", "lifecycle.op.capabilities-old")
	first := func(err error) error { return err }
	calls := map[string]func(ctx context.Context, cs *ClientSession) error{
		methodToolsList: func(ctx context.Context, cs *ClientSession) (err error) {
			for _, err = range cs.Tools(ctx) {
			}
			return first(err)
		},
		methodPromptsList: func(ctx context.Context, cs *ClientSession) (err error) {
			for _, err = range cs.Prompts(ctx) {
			}
			return err
		},
		methodResourcesList: func(ctx context.Context, cs *ClientSession) (err error) {
			for _, err = range cs.Resources(ctx) {
			}
			return err
		},
		methodTemplatesList: func(ctx context.Context, cs *ClientSession) (err error) {
			for _, err = range cs.ResourceTemplates(ctx) {
			}
			return err
		},
		methodToolsCall: func(ctx context.Context, cs *ClientSession) error {
			_, err := CallTool[string](ctx, cs, "x", nil)
			return err
		},
		methodPromptsGet:    func(ctx context.Context, cs *ClientSession) error { _, err := cs.GetPrompt(ctx, "x", nil); return err },
		methodResourcesRead: func(ctx context.Context, cs *ClientSession) error { _, err := cs.ReadResource(ctx, "x:y"); return err },
		methodComplete: func(ctx context.Context, cs *ClientSession) error {
			_, err := cs.Complete(ctx, &CompleteParams{Ref: CompleteReference{Type: "ref/prompt", Name: "x"}})
			return err
		},
		methodSetLevel: func(ctx context.Context, cs *ClientSession) error { return cs.SetLogLevel(ctx, "info") },
		methodListen: func(ctx context.Context, cs *ClientSession) error {
			sub, err := cs.Listen(ctx, SubscriptionFilter{ResourceSubscriptions: []string{"x:y"}})
			if sub != nil {
				sub.Close()
			}
			return err
		},
	}
	everyVersion(t, func(t *testing.T, version string) {
		bubble(t, func(t *testing.T) {
			s, tr := script(t, undeclared)
			cs, err := dial(t, ClientOptions{Versions: []string{version}}, tr)
			if err != nil {
				t.Fatal(err)
			}
			for method, call := range calls {
				before := len(s.received())
				err := call(t.Context(), cs)
				if method == methodComplete && version == Version20241105 { // has no such capability
					if err != nil {
						t.Errorf("%s: %v", method, err)
					}
					continue
				}
				if !errors.Is(err, errors.ErrUnsupported) || isPeers(err) || len(s.received()) != before {
					t.Errorf("%s: %v, %d messages", method, err, len(s.received())-before)
				}
				if err := call(t.Context(), cs.With(CallOptions{Insist: true})); err != nil {
					t.Errorf("%s, insisting: %v", method, err)
				}
				if told := len(s.received()) - before; told == 0 && (method != methodSetLevel || version != Version20260728) {
					t.Errorf("%s, insisting: nothing was sent", method)
				}
			}
			before := len(s.received())
			if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil || len(s.received()) == before {
				t.Errorf("Call refuses: %v", err)
			}
		})
	})
}

// What of a filter the server did not declare is left out; the rest is served.
func TestClientListensToWhatThereIs(t *testing.T) {
	shows(t, "caps.respect", "subs.ack.client-check")
	bubble(t, func(t *testing.T) {
		s, tr := script(t, func(m Message) []string {
			if m.Method == methodInitialize {
				return []string{resultOf(m, strings.Replace(initializedAs(Version20251125), declaresAll, `{"tools":{"listChanged":true},"resources":{}}`, 1))}
			}
			return undeclared(m)
		})
		cs, err := dial(t, ClientOptions{Versions: []string{Version20251125}}, tr)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"x:y"}})
		if err != nil || !sub.Honored.ToolsListChanged || sub.Honored.ResourceSubscriptions != nil {
			t.Fatalf("%+v, %v", sub, err)
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		if got := s.methods(); got != "initialize notifications/initialized" {
			t.Errorf("sent %s", got)
		}
	})
}

// The caller's _meta is checked before anything is sent.
func TestClientMetaChecked(t *testing.T) {
	shows(t, "meta.key.reserved-second-label", "meta.key.name", "meta.key.label", "meta.trace.format")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{}, each(`{}`))
		before := len(s.received())
		for key, value := range map[string]string{
			"io.modelcontextprotocol/clientInfo": `{}`, "dev.mcp/x": `1`, "-a": `1`, "a b": `1`, "1x.y/z": `1`, "traceparent": `"nonsense"`, "tracestate": `7`,
		} {
			err := cs.With(CallOptions{Meta: Meta{key: json.RawMessage(value)}}).Call(t.Context(), "x/y", nil, nil)
			if err == nil || isPeers(err) || len(s.received()) != before {
				t.Errorf("%s: %v, %d sent", key, err, len(s.received())-before)
			}
		}
		good := Meta{"example.com/x": json.RawMessage(`{"a":[1.10]}`), "traceparent": json.RawMessage(`"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`)}
		if err := cs.With(CallOptions{Meta: good}).Call(t.Context(), "x/y", nil, nil); err != nil {
			t.Fatal(err)
		}
		sent := rawMember(s.of("x/y")[0].Params, "_meta")
		for key, value := range good {
			if string(rawMember(sent, key)) != string(value) {
				t.Errorf("sent %s", sent)
			}
		}
	})
}
