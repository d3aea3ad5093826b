//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A tap keeps what went in and out of a server process, and holds the end that
// is ours to the rules that need no knowledge of the conversation.
type tap struct {
	t interface {
		Errorf(format string, args ...any)
		Fatalf(format string, args ...any)
		Logf(format string, args ...any)
	}
	dir       string   // of a tap on a process
	http      *httpTap // else
	published map[*revision]*wireSchema
}

func (p *peers) newTap(t *testing.T) *tap {
	return &tap{t: t, dir: t.TempDir(), published: p.published}
}

// command is the server's command line with the tap around it. A client may
// start the server more than once, each gets its own files.
func (p *tap) command(server ...string) []string {
	return append([]string{"sh", "-c", `d=$0; tee "$d/$$.in" | "$@" | tee "$d/$$.out"`, p.dir}, server...)
}

// A wireMessage is read with encoding/json, not with the scanner under test.
type wireMessage struct {
	JSONRPC string
	ID      json.RawMessage
	Method  string
	Params  struct {
		RequestID, ProgressToken     json.RawMessage
		InputResponses, RequestState json.RawMessage
		Progress                     float64
		Meta                         wireMeta `json:"_meta"`
	}
	Result map[string]json.RawMessage
	Error  *struct {
		Code    int
		Message *string
	}
	raw json.RawMessage
}

type wireMeta struct {
	ProgressToken json.RawMessage
	Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities  json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	Subscription  json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
	ServerInfo    json.RawMessage `json:"io.modelcontextprotocol/serverInfo"`
}

// meta is the _meta of a result.
func (m *wireMessage) meta() (meta wireMeta) {
	_ = json.Unmarshal(m.Result["_meta"], &meta)
	return meta
}

// modern reports whether a request says that it is.
func (m *wireMessage) modern() bool { return m.Params.Meta.Version == Version20260728 }

func (m *wireMessage) String() string { return string(m.raw) }

func (p *tap) read(file string) []wireMessage {
	f, err := os.Open(file)
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	defer f.Close()
	var messages []wireMessage
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := wireMessage{raw: bytes.Clone(lines.Bytes())}
		if err := json.Unmarshal(m.raw, &m); err != nil || m.JSONRPC != "2.0" {
			p.t.Errorf("%s: not a message: %v: %s", filepath.Base(file), err, m.raw)
		}
		messages = append(messages, m)
	}
	if err := lines.Err(); err != nil {
		p.t.Errorf("%v", err)
	}
	return messages
}

// connections are what went over each: from the client, from the server.
func (p *tap) connections() (all [][2][]wireMessage) {
	if p.http != nil {
		p.http.mu.Lock()
		defer p.http.mu.Unlock()
		for _, m := range slices.Concat(p.http.order[0], p.http.order[1]) {
			if m.JSONRPC != "2.0" {
				p.t.Errorf("not a message: %s", m.raw)
			}
		}
		return append(all, [2][]wireMessage{slices.Clone(p.http.order[0]), slices.Clone(p.http.order[1])})
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "*.in"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("no server was started: %v", err)
	}
	for _, file := range files {
		all = append(all, [2][]wireMessage{p.read(file), p.read(strings.TrimSuffix(file, "in") + "out")})
	}
	return all
}

func (p *tap) log() {
	if p.http != nil {
		for _, x := range p.http.seen("") {
			p.t.Logf("%s", x)
		}
		return
	}
	files, _ := filepath.Glob(filepath.Join(p.dir, "*"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		p.t.Logf("%s\n%s", filepath.Base(file), text)
	}
}

// requestsOf are the requests among messages by id, and the ids that were
// cancelled; an id must not come twice.
func (p *tap) requestsOf(messages []wireMessage) (requests map[string]wireMessage, cancelled map[string]bool) {
	requests, cancelled = map[string]wireMessage{}, map[string]bool{}
	for _, m := range messages {
		switch id := string(m.ID); {
		case m.Method == notifyCancelled:
			cancelled[string(m.Params.RequestID)] = true
		case m.Method != "" && m.ID != nil:
			// Over HTTP a request that was refused may be sent again in another way.
			if before, twice := requests[id]; twice && (p.http == nil || !bytes.Equal(before.raw, m.raw)) {
				p.t.Errorf("id %s was used twice", id)
			}
			requests[id] = m
		}
	}
	return requests, cancelled
}

// checkAnswers checks that each of their requests was answered once, or
// cancelled and then not, and that what is about a request comes before its
// answer. It calls each with every answer and its request.
func (p *tap) checkAnswers(ours, theirs []wireMessage, each func(answer, request *wireMessage)) {
	requests, cancelled := p.requestsOf(theirs)
	open := maps.Clone(requests)
	progress := map[string]float64{}
	for _, m := range ours {
		id := string(m.ID)
		request, isOpen := open[id]
		switch {
		case m.Method == notifyProgress:
			token := string(m.Params.ProgressToken)
			if last, ok := progress[token]; ok && m.Params.Progress <= last {
				p.t.Errorf("progress %v after %v", m.Params.Progress, last)
			}
			progress[token] = m.Params.Progress
			found := false
			for _, r := range open {
				found = found || string(r.Params.Meta.ProgressToken) == token
			}
			if !found {
				p.t.Errorf("progress for token %s of no open request", token)
			}
		case m.Method != "":
		case !isOpen:
			p.t.Errorf("an answer to no open request: %s", &m)
		case cancelled[id] && p.http != nil && m.Error != nil && m.Error.Code == CodeRequestCancelled: // its stream has to end with something
		case cancelled[id]:
			p.t.Errorf("an answer to a cancelled request: %s", &m)
		default:
			each(&m, &request)
		}
		if m.Method == "" {
			delete(open, id)
		}
	}
	left := map[string]bool{}
	if p.http != nil {
		left = p.http.leftAlone()
	}
	for id, m := range open {
		if !cancelled[id] && !left[id] {
			p.t.Errorf("not answered: %s", &m)
		}
	}
}

// What only one era knows.
var (
	legacyMethods = []string{"initialize", "notifications/initialized", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
		"notifications/roots/list_changed", "notifications/elicitation/complete"}
	modernMethods    = []string{"server/discover", "subscriptions/listen", "notifications/subscriptions/acknowledged"}
	modernMembers    = []string{"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}
	cacheableMethods = []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)

// checkResult checks the vocabulary of an answer of ours at the era of its
// request.
func (p *tap) checkResult(answer, request *wireMessage) {
	if e := answer.Error; e != nil {
		if e.Code == 0 || e.Message == nil || answer.Result != nil {
			p.t.Errorf("no proper error: %s", answer)
		}
		return
	}
	if answer.Result == nil {
		p.t.Errorf("neither result nor error: %s", answer)
	}
	if !request.modern() {
		for _, name := range modernMembers {
			if _, has := answer.Result[name]; has {
				p.t.Errorf("%s in a legacy result: %s", name, answer)
			}
		}
		if answer.meta().ServerInfo != nil {
			p.t.Errorf("serverInfo in a legacy result: %s", answer)
		}
		return
	}
	kind := string(answer.Result["resultType"])
	if kind != `"complete"` && kind != `"input_required"` || answer.meta().ServerInfo == nil {
		p.t.Errorf("no resultType or serverInfo in a modern result: %s", answer)
	}
	_, ttl := answer.Result["ttlMs"]
	_, scope := answer.Result["cacheScope"]
	if want := kind == `"complete"` && slices.Contains(cacheableMethods, request.Method); ttl != want || scope != want {
		p.t.Errorf("the caching hints of %s: %s", request.Method, answer)
	}
}

// checkSubscriptions checks that each listen is acknowledged before anything
// else, and that changes carry the id of an open one.
func (p *tap) checkSubscriptions(ours, theirs []wireMessage) {
	const asked, acknowledged, ended = 1, 2, 3
	listens := map[string]int{}
	for _, m := range theirs {
		if m.Method == methodListen {
			listens[string(m.ID)] = asked
		}
	}
	for _, m := range ours {
		id := string(m.Params.Meta.Subscription)
		switch {
		case m.Method == notifyAcknowledged:
			if listens[id] != asked {
				p.t.Errorf("acknowledged at the wrong time: %s", &m)
			}
			listens[id] = acknowledged
		case strings.HasSuffix(m.Method, "/list_changed"), m.Method == notifyResourceUpdated:
			if listens[id] != acknowledged {
				p.t.Errorf("a change for no open subscription: %s", &m)
			}
		case m.Method == "" && listens[string(m.ID)] != 0:
			if m.Error == nil && string(m.meta().Subscription) != string(m.ID) {
				p.t.Errorf("the end of a subscription: %s", &m)
			}
			listens[string(m.ID)] = ended
		}
	}
}

// checkServer checks what our server wrote against what it was sent; rounds is
// how often it has to have asked a modern client for input.
func (p *tap) checkServer(rev *revision, rounds int) {
	asked := 0
	for _, c := range p.connections() {
		theirs, ours := c[0], c[1]
		questions, _ := p.requestsOf(ours)
		for _, m := range questions {
			if rev.modern {
				p.t.Errorf("the server sent a request at %s: %s", rev.version, &m)
			}
		}
		requests, _ := p.requestsOf(theirs)
		p.checkAnswers(ours, theirs, func(answer, request *wireMessage) {
			p.checkResult(answer, request)
			if string(answer.Result["resultType"]) == `"input_required"` {
				asked++
			}
		})
		for _, m := range ours {
			p.checkMethod(rev, &m)
			p.checkSchema(rev, &m, requests)
		}
		if rev.modern {
			p.checkSubscriptions(ours, theirs)
		}
	}
	if p.http != nil {
		p.checkServerHTTP(rev)
	}
	if !rev.modern {
		rounds = 0
	}
	if asked != rounds {
		p.t.Errorf("%d input_required results at %s, want %d", asked, rev.version, rounds)
	}
}

// checkMethod checks that a message of ours is of the right era.
func (p *tap) checkMethod(rev *revision, m *wireMessage) {
	wrong := legacyMethods
	if !rev.modern {
		wrong = modernMethods
	}
	if slices.Contains(wrong, m.Method) {
		p.t.Errorf("there is no %s at %s: %s", m.Method, rev.version, m)
	}
}

// checkClient checks what our client wrote: a probe first where 2026-07-28 was
// not ruled out, and then only what the era allows.
func (p *tap) checkClient(rev *revision, probes bool, cancelled int) {
	all := p.connections()
	if len(all) != 1 {
		p.t.Fatalf("%d servers were started", len(all))
	}
	ours, theirs := all[0][0], all[0][1]
	requests, gaveUp := p.requestsOf(ours)
	questions, _ := p.requestsOf(theirs)
	p.checkAnswers(ours, theirs, p.checkResult)
	for i, m := range ours {
		probe := m.Method == methodDiscover
		if m.ID != nil && m.Method != "" {
			if first := probes && i == 0; probe != first && !(probe && rev.modern) { // a ping is a discover there
				p.t.Errorf("message %d is %s", i, &m)
			}
			if modern := rev.modern || probe; modern != m.modern() || modern != (m.Params.Meta.Capabilities != nil) {
				p.t.Errorf("the _meta of a request at %s: %s", rev.version, &m)
			}
			if !rev.modern && (m.Params.InputResponses != nil || m.Params.RequestState != nil) {
				p.t.Errorf("a legacy request with answers: %s", &m)
			}
		} else if rev.modern && (m.Method != notifyCancelled || p.http != nil) {
			p.t.Errorf("our client sent more than requests at %s: %s", rev.version, &m)
		}
		if !probe {
			p.checkMethod(rev, &m)
			p.checkSchema(rev, &m, questions)
		}
	}
	if p.http != nil {
		if p.checkClientHTTP(rev); rev.modern {
			gaveUp = p.http.leftAlone()
		}
	}
	for id := range gaveUp {
		if _, ok := requests[id]; !ok {
			p.t.Errorf("our client cancelled %s, which it had not sent", id)
		}
	}
	if len(gaveUp) != cancelled {
		p.t.Errorf("%d cancellations were sent, want %d", len(gaveUp), cancelled)
	}
}

// A wireSchema is a published schema made ready for whole messages.
type wireSchema struct {
	publishedSchema
	compiled *Schema
	methods  map[string]string // the definition of each request and notification
}

// publishedSchemas returns none where the published schemas are not there.
func publishedSchemas(t *testing.T) map[*revision]*wireSchema {
	all := map[*revision]*wireSchema{}
	if _, err := os.Stat(publishedSpec); err != nil {
		return all
	}
	for _, rev := range revisions {
		s := &wireSchema{publishedSchema: readPublished(t, rev), methods: map[string]string{}}
		properties := map[string]any{}
		for name, def := range s.defs {
			properties[name] = map[string]string{"$ref": "#/" + s.keyword + "/" + name}
			if method, ok := inside(def, "properties", "method", "const").(string); ok {
				s.methods[method] = name
			}
		}
		for _, member := range []string{"inputSchema", "outputSchema"} { // are any JSON Schema
			if schema, ok := inside(s.defs["Tool"], "properties", member).(map[string]any); ok {
				delete(schema, "additionalProperties")
				delete(schema["properties"].(map[string]any), "additionalProperties")
			}
		}
		whole, err := json.Marshal(map[string]any{"$schema": s.dialect, "properties": properties, s.keyword: s.defs})
		if err != nil {
			t.Fatal(err)
		}
		if s.compiled, err = CompileSchema(whole, nil); err != nil {
			t.Fatal(err)
		}
		all[rev] = s
	}
	return all
}

// inside is what an object holds at the end of a path, nil if nothing.
func inside(node any, path ...string) any {
	for _, step := range path {
		object, _ := node.(map[string]any)
		node = object[step]
	}
	return node
}

// checkSchema checks a message of ours with the published schema of the
// revision, with no members beyond those that it names.
func (p *tap) checkSchema(rev *revision, m *wireMessage, requests map[string]wireMessage) {
	if m.Method == "" {
		if request := requests[string(m.ID)]; rev.modern && !request.modern() {
			rev = rev20251125 // a peer that pings a modern server
		}
	}
	s := p.published[rev]
	if s == nil {
		return
	}
	name, doc := s.frame(m, requests)
	if err := s.compiled.Validate(fmt.Appendf(nil, "{%q:%s}", name, doc)); err != nil || s.defs[name] == nil {
		p.t.Errorf("%s at %s: %v\nin %s", name, rev.version, err, m)
	}
}

// frame returns the definition that a message has to fit, and what of it the
// definition is about.
func (s *wireSchema) frame(m *wireMessage, requests map[string]wireMessage) (name string, doc []byte) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(m.raw, &members)
	if m.Method != "" {
		name = s.methods[m.Method]
		properties, _ := inside(s.defs[name], "properties").(map[string]any)
		for member := range members {
			if _, ok := properties[member]; !ok && (member == "jsonrpc" || member == "id") { // older schemas leave them out
				delete(members, member)
			}
		}
		doc, _ = json.Marshal(members)
		return name, doc
	}
	if m.Error != nil {
		if name = "JSONRPCErrorResponse"; s.defs[name] == nil {
			name = "JSONRPCError"
		}
		return name, m.raw
	}
	request := requests[string(m.ID)]
	if name = strings.TrimSuffix(s.methods[request.Method], "Request") + "Result"; s.defs[name] == nil {
		name = "EmptyResult"
	}
	if string(m.Result["resultType"]) == `"input_required"` {
		name = "InputRequiredResult"
	}
	if name == "ElicitResult" { // the form of the peer decides, and the schemas know of no number but integers
		delete(m.Result, "content")
		doc, _ = json.Marshal(m.Result)
		return name, doc
	}
	return name, members["result"]
}

// A tapErrors keeps what a tap complains of.
type tapErrors []string

func (e *tapErrors) Errorf(format string, args ...any) { *e = append(*e, fmt.Sprintf(format, args...)) }
func (e *tapErrors) Fatalf(format string, args ...any) { e.Errorf(format, args...) }
func (e *tapErrors) Logf(string, ...any)               {}

// TestPeersTap shows that the tap finds what it is there for.
func TestPeersTap(t *testing.T) {
	const (
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}`
		done = `"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}`
		call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + meta + `}}` + "\n"
		ok   = `{"jsonrpc":"2.0","id":1,"result":{` + done + `}}` + "\n"
		tick = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}` + "\n"
		old  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n"
		stop = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n"
		hear = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},` + meta + `}}` + "\n"
		news = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` + "\n"
	)
	modern, legacy, published := rev20260728, rev20251125, publishedSchemas(t)
	schema := "" // what is found with a schema, where there is one
	if published[modern] != nil {
		schema = "CallToolResult at 2026-07-28"
	}
	for _, c := range []struct {
		name    string
		rev     *revision
		in, out string
		want    string // "": nothing to complain of
	}{
		{"as it should be", modern, call, tick + ok, ""},
		{"legacy as it should be", legacy, old, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}` + "\n", ""},
		{"cancelled", modern, call + stop, tick, ""},
		{"no answer", modern, call, "", "not answered"},
		{"two answers", modern, call, ok + ok, "no open request"},
		{"answer after all", modern, call + stop, ok, "cancelled request"},
		{"late progress", modern, call, ok + tick, "no open request"},
		{"stale progress", modern, call, tick + tick + ok, "progress 1 after 1"},
		{"legacy words", modern, call, ok + `{"jsonrpc":"2.0","id":"s","method":"ping"}` + "\n", "there is no ping"},
		{"modern words", legacy, old, ok, "resultType in a legacy result"},
		{"code 0", modern, call, `{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"m"}}` + "\n", "no proper error"},
		{"no resultType", modern, call, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}` + "\n", "no resultType"},
		{"unacknowledged", modern, hear + stop, news, "no open subscription"},
		{"not a result", modern, call, strings.Replace(ok, `"content":[]`, `"content":{}`, 1), schema},
		{"not JSON", modern, call, "oops\n" + ok, "not a message"},
	} {
		found := &tapErrors{}
		p := &tap{t: found, dir: t.TempDir(), published: published}
		for name, text := range map[string]string{"1.in": c.in, "1.out": c.out} {
			if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.checkServer(c.rev, 0)
		if all := strings.Join(*found, "\n"); (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: the tap says %q, want %q", c.name, all, c.want)
		}
	}
}
