//go:build go1.25

package mcp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// knownAs is what a client stored of a server of a version, after a way
// through encoding/json.
func knownAs(t *testing.T, version string) *ServerInfo {
	t.Helper()
	cs, _ := connected(t, version, ClientOptions{}, silent)
	before := cs.Server()
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	after := new(ServerInfo)
	if err := json.Unmarshal(text, after); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(after)
	if err != nil || string(again) != string(text) || !reflect.DeepEqual(after.Implementation, before.Implementation) ||
		after.ProtocolVersion != version || after.Capabilities.Tools == nil || !after.Capabilities.Resources.Subscribe {
		t.Errorf("%s became %s, %v", text, again, err)
	}
	return after
}

// A client that knows the server asks nothing, and finds out when it is wrong.
func TestClientConnectKnown(t *testing.T) {
	shows(t, "version.era.cache", "version.client-retry")
	refusing := func(code int, next react) react {
		refused := false
		return func(m Message) []string {
			if !refused && m.IsRequest() {
				refused = true
				return []string{errorOf(m, code)}
			}
			return next(m)
		}
	}
	answers := each(`{"resultType":"complete","tools":[]}`)
	for _, c := range []struct {
		name, known string
		versions    []string
		server      react
		sent        string
		speaks      string
		fails       bool // the call
	}{
		{"modern", Version20260728, nil, modern(answers), "tools/list", Version20260728, false},
		{"legacy", Version20250618, nil, legacy(Version20250618, answers), "initialize notifications/initialized tools/list", Version20250618, false},
		{"older than it was", Version20251125, nil, legacy(Version20241105, answers), "initialize notifications/initialized tools/list", Version20241105, false},
		{"modern now", Version20251125, nil, refusing(CodeMethodNotFound, modern(answers)), "initialize server/discover tools/list", Version20260728, false},
		{"another modern one", Version20260728, nil, refusing(CodeUnsupportedProtocolVersion, modern(answers)), "tools/list server/discover tools/list", Version20260728, false},
		{"no longer modern", Version20260728, nil, refusing(CodeUnsupportedProtocolVersion, legacy(Version20251125, answers)),
			"tools/list server/discover initialize notifications/initialized tools/list", Version20251125, false},
		{"refuses for another reason", Version20260728, nil, refusing(CodeInvalidParams, modern(answers)), "tools/list", Version20260728, true},
		{"not spoken here", Version20260728, []string{Version20251125}, legacy(Version20251125, answers), "initialize notifications/initialized tools/list", Version20251125, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				known := knownAs(t, c.known)
				s, tr := script(t, c.server)
				cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: c.versions}).ConnectKnown(t.Context(), tr, known)
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				err = nil
				for _, err = range cs.Tools(t.Context()) {
				}
				if (err != nil) != c.fails {
					t.Errorf("error %v", err)
				}
				if got := s.methods(); got != c.sent {
					t.Errorf("sent %s", got)
				}
				if got := cs.Server().ProtocolVersion; got != c.speaks {
					t.Errorf("speaks %s", got)
				}
				if got := cs.Server().Name; got != "s" {
					t.Errorf("the server is %q", got)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) { // nothing is known
		for _, known := range []*ServerInfo{nil, {}, {ProtocolVersion: "2099-01-01"}} {
			s, tr := script(t, modern(answers))
			cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).ConnectKnown(t.Context(), tr, known)
			if err != nil || s.methods() != "server/discover" {
				t.Errorf("%v: %v, %s", known, err, s.methods())
			}
			cs.Close()
		}
	})
	bubble(t, func(t *testing.T) { // neither the one nor the other
		s, tr := script(t, func(m Message) []string { return []string{errorOf(m, CodeMethodNotFound)} })
		_, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).ConnectKnown(t.Context(), tr, &ServerInfo{ProtocolVersion: Version20250618})
		if err == nil || !strings.Contains(err.Error(), "refused") || s.methods() != "initialize server/discover" {
			t.Errorf("%v, %s", err, s.methods())
		}
		if _, err := s.conn.Read(t.Context()); err == nil {
			t.Error("the connection is still open")
		}
	})
}

// Calls that find out together that the server is not what it was known as
// are all sent again, and it is asked once what it speaks.
func TestClientKnownWronglyByMany(t *testing.T) {
	shows(t, "version.client-retry")
	bubble(t, func(t *testing.T) {
		old := legacy(Version20251125, each(`{"tools":[]}`))
		s, tr := script(t, func(m Message) []string {
			if strings.Contains(string(m.Params), metaProtocolVersion) && m.Method != "server/discover" {
				return []string{errorOf(m, CodeUnsupportedProtocolVersion)}
			}
			return old(m)
		})
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).ConnectKnown(t.Context(), tr, knownAs(t, Version20260728))
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		failed := make(chan error)
		for range 3 {
			go func() { failed <- cs.Call(t.Context(), "tools/list", nil, nil) }()
		}
		go func() {
			_, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true})
			failed <- err
		}()
		for range 4 {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
		if n := strings.Count(s.methods(), "initialize "); n != 1 {
			t.Errorf("sent %s", s.methods())
		}
	})
}
