//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asksUser sends one question in the way of the version and returns what the
// client answered: the result as JSON, or the error.
func asksUser(t *testing.T, version string, opts ClientOptions, params string) (answer string, failed error) {
	t.Helper()
	const method = methodElicit
	if version != Version20260728 {
		_, s := connected(t, version, opts, silent)
		s.send(`{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":` + params + `}`)
		for _, m := range s.of("response") {
			if m.Error != nil {
				return "", m.Error
			}
			return string(m.Result), nil
		}
		return "", errors.New("no answer")
	}
	cs, s := connected(t, version, opts, roundsOf(`{"resultType":"input_required","inputRequests":{"k":{"method":"`+method+`","params":`+params+`}}}`, final))
	if _, err := cs.CallTool(t.Context(), "x", nil); err != nil {
		return "", err
	}
	return string(rawMember(rawMember(s.of(methodToolsCall)[1].Params, "inputResponses"), "k")), nil
}

// What the user leaves out is filled in by the form; the rest must fit.
func TestClientElicitDefaults(t *testing.T) {
	shows(t, "elicit.form.client-validate", "elicit.result.content", "elicit.form.enums")
	form := `{"type":"object","properties":{"name":{"type":"string","default":"Ada"},"age":{"type":"integer","default":36},"ok":{"type":"boolean"},
		"color":{"type":"string","enum":["red","blue"],"default":"red"},"many":{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["a"]}},"required":["name","age"]}`
	all := `"color":"red","many":["a"]`
	eachEra(t, func(t *testing.T, version string) {
		for content, want := range map[string]string{
			``: `{"name":"Ada","age":36,` + all + `}`, `{}`: `{"name":"Ada","age":36,` + all + `}`, `{"name":"Bob","ok":false}`: `{"name":"Bob","ok":false,"age":36,` + all + `}`,
			`{"name":7}`: "", `{"color":"green"}`: "", `{"many":["c"]}`: "", `[]`: "", `7`: "", `{`: "",
		} {
			mine := json.RawMessage(content)
			opts := ClientOptions{Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
				return &ElicitResult{Action: "accept", Content: mine}, nil
			}}
			if content == "" {
				mine = nil
			}
			got, err := asksUser(t, version, opts, `{"message":"?","requestedSchema":`+form+`}`)
			if (err != nil) != (want == "") {
				t.Errorf("%s: %s, %v", content, got, err)
			} else if err == nil {
				wantJSON(t, got, `{"action":"accept","content":`+want+`}`)
			}
			if string(mine) != content {
				t.Errorf("the callback's content changed: %s", mine)
			}
		}
	})
}

// A page is put to the user only when the client declared that, in the shape
// of each revision, and nothing but consent goes back.
func TestClientElicitPage(t *testing.T) {
	shows(t, "elicit.mode.undeclared-error", "elicit.mode.undeclared-modern", "elicit.url.id-opaque", "elicit.url.no-auto-open", "elicit.url.no-prefetch", "elicit.result.content", "elicit.caps.one-mode")
	both := &ClientCapabilities{Elicitation: &ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}}
	only := &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
	const id = `,"elicitationId":" {\"odd\"} é"`
	eachEra(t, func(t *testing.T, version string) {
		for _, c := range []struct {
			name, params string
			caps         *ClientCapabilities
			asked        bool
		}{
			{"a page", `{"mode":"url","message":"?","url":"https://a.example/p?q=1"` + id + `}`, both, true},
			{"pages only", `{"mode":"url","message":"?","url":"http://127.0.0.1:1/p"` + id + `}`, only, true},
			{"not declared", `{"mode":"url","message":"?","url":"https://a.example/"` + id + `}`, nil, false},
			{"forms not declared", `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`, only, false},
			{"no address", `{"mode":"url","message":"?"` + id + `}`, both, false},
			{"a script", `{"mode":"url","message":"?","url":"javascript:alert(1)"` + id + `}`, both, false},
			{"a file", `{"mode":"url","message":"?","url":"file:///etc/hosts"` + id + `}`, both, false},
			{"not an address", `{"mode":"url","message":"?","url":"a.example/p"` + id + `}`, both, false},
		} {
			var asked *ElicitParams
			opts := ClientOptions{Capabilities: c.caps, Elicit: func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
				asked = p
				return &ElicitResult{Action: "accept", Content: json.RawMessage(`{"secret":1}`)}, nil
			}}
			got, err := asksUser(t, version, opts, c.params)
			if (asked != nil) != c.asked || (err == nil) != c.asked {
				t.Errorf("%s: asked %+v, %v", c.name, asked, err)
				continue
			}
			var refused *Error
			if !c.asked {
				if version == Version20251125 && (!errors.As(err, &refused) || refused.Code != CodeInvalidParams) {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			wantJSON(t, got, `{"action":"accept"}`)
			wantID := map[string]string{Version20251125: ` {"odd"} é`}[version]
			if asked.Mode != "url" || asked.URL == "" || asked.ElicitationID != wantID {
				t.Errorf("%s: %+v", c.name, asked)
			}
		}
	})
}

func complete(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"` + id + `"}}`
}

// needsPages refuses calls until the pages with these ids were visited.
func needsPages(m Message, ids ...string) string {
	var list []string
	for _, id := range ids {
		list = append(list, `{"mode":"url","message":"?","url":"https://a.example/`+id+`","elicitationId":"`+id+`"}`)
	}
	return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32042,"message":"first","data":{"elicitations":[` + strings.Join(list, ",") + `]}}}`
}

var withPages = &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}

// A call that needs pages to be visited is sent again when the server is done
// with all of them, whenever it says so.
func TestClientPagesRequired(t *testing.T) {
	shows(t, "elicit.url.complete.unknown", "elicit.url.id-opaque", "elicit.url.no-auto-open")
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("early ", early), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				calls := 0
				seen := make(chan string, 10)
				opts := ClientOptions{Capabilities: withPages, Elicit: func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
					seen <- p.URL
					return &ElicitResult{Action: "accept"}, nil
				}}
				cs, s := connected(t, Version20251125, opts, func(m Message) []string {
					if calls++; calls == 2 {
						return []string{resultOf(m, `{"content":[]}`)}
					}
					frames := []string{complete("unknown"), needsPages(m, "a", "b")}
					if early {
						frames = append(frames, complete("a"), complete("b"), complete("b"))
					}
					return frames
				})
				done := make(chan error, 1)
				go func() {
					_, err := cs.CallTool(t.Context(), "x", map[string]int{"n": 1})
					done <- err
				}()
				if !early {
					for _, id := range []string{"other", "a", "a"} {
						s.send(complete(id))
						if got := len(s.of(methodToolsCall)); got != 1 {
							t.Errorf("sent %d times after %s", got, id)
						}
					}
					time.Sleep(2 * time.Minute) // users take their time
					s.send(complete("b"))
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				sent := s.of(methodToolsCall)
				if len(sent) != 2 || sent[0].ID == sent[1].ID || string(sent[0].Params) != string(sent[1].Params) || len(seen) != 2 {
					t.Errorf("sent %v, asked %d times", sent, len(seen))
				}
				s.send(complete("a"), complete("late"))
				synctest.Wait()
				if n := len(cs.link.pagesDone); n > 4 {
					t.Errorf("%d ids are kept", n)
				}
			})
		})
	}
}

// Where the user does not agree, or cannot be asked, the caller gets the
// server's error with its data; nothing waits for ever.
func TestClientPagesRefused(t *testing.T) {
	shows(t, "elicit.url.no-auto-open", "timeout.maximum")
	answer := func(action string) func(context.Context, *ElicitParams) (*ElicitResult, error) {
		return func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
			if p.ElicitationID == "b" {
				return &ElicitResult{Action: action}, nil
			}
			return &ElicitResult{Action: "accept"}, nil
		}
	}
	for _, c := range []struct {
		name    string
		version string
		opts    ClientOptions
		reply   func(m Message) string
		sent    int
		peers   bool
	}{
		{"declined", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("decline")}, nil, 1, true},
		{"cancelled", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("cancel")}, nil, 1, true},
		{"not declared", Version20251125, ClientOptions{Elicit: answer("accept")}, nil, 1, true},
		{"no callback", Version20251125, ClientOptions{Capabilities: withPages}, nil, 1, true},
		{"another version", Version20260728, ClientOptions{Capabilities: withPages, Elicit: answer("accept")}, nil, 1, true},
		{"an older version", Version20250618, ClientOptions{Capabilities: withPages, Elicit: answer("accept")}, nil, 1, true},
		{"no pages", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("accept")}, func(m Message) string { return needsPages(m) }, 1, true},
		{"no data", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("accept")}, func(m Message) string { return errorOf(m, -32042) }, 1, true},
		{"a form among them", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("accept")}, func(m Message) string {
			return strings.Replace(needsPages(m, "a", "b"), `"mode":"url"`, `"mode":"form"`, 1)
		}, 1, true},
		{"the callback fails", Version20251125, ClientOptions{Capabilities: withPages, Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
			return nil, errors.New("no window")
		}}, nil, 1, false},
		{"never completed", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("accept"), MaxTimeout: time.Minute}, nil, 1, false},
		{"again and again", Version20251125, ClientOptions{Capabilities: withPages, Elicit: answer("accept"), MaxRounds: 3}, func(m Message) string {
			id := "x" + m.ID.String()
			return needsPages(m, id) + "\n" + complete(id)
		}, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, s := connected(t, c.version, c.opts, func(m Message) []string {
					switch {
					case m.Method != methodToolsCall:
						return nil
					case c.reply == nil:
						return []string{needsPages(m, "a", "b")}
					}
					return strings.Split(c.reply(m), "\n")
				})
				began := time.Now()
				_, err := cs.CallTool(t.Context(), "x", nil)
				var e *Error
				if errors.As(err, &e) != c.peers || err == nil || c.peers && e.Code != CodeURLElicitationRequired {
					t.Errorf("error %v", err)
				}
				if c.name == "declined" && !strings.Contains(string(e.Data), "https://a.example/a") {
					t.Errorf("data %s", e.Data)
				}
				if c.name == "never completed" && (!errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute) {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if n := len(s.of(methodToolsCall)); n != c.sent {
					t.Errorf("sent %d times", n)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) { // ids that nobody asks for do not pile up
		cs, s := connected(t, Version20251125, ClientOptions{}, silent)
		for i := range maxPagesDone + 50 {
			s.send(complete(fmt.Sprint(i)))
		}
		synctest.Wait()
		if n := len(cs.link.pagesDone); n != maxPagesDone {
			t.Errorf("%d ids", n)
		}
	})
}
