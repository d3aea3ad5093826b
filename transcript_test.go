//go:build go1.25

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"
)

// The transcripts of testdata/transcripts are conversations, each written down
// once and played against the server or the client of this package. The
// README there says what the lines mean, for those who want to play them
// against something else.

var updateTranscripts = flag.Bool("update", false, "rewrite what the transcripts expect, where it is not what happens")

func TestTranscripts(t *testing.T) {
	leakCheck(t)
	names, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rewritten, err := playTranscript(t, text, *updateTranscripts)
			if rewritten != nil && !bytes.Equal(rewritten, text) {
				if err := os.WriteFile(name, rewritten, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				t.Fatalf("%s:%v", name, err)
			}
		})
	}
}

// playTranscript plays a transcript once for each revision that it names.
// With update it returns the transcript with what happened.
func playTranscript(t *testing.T, text []byte, update bool) (rewritten []byte, err error) {
	tr, err := parseTranscript(text)
	if err == nil && !update {
		err = tr.checkUse()
	}
	if err != nil {
		return nil, err
	}
	for _, version := range tr.revisions {
		synctest.Test(t, func(*testing.T) { err = tr.play(version, update) })
		if err != nil {
			return nil, fmt.Errorf("%w (at %s)", err, version)
		}
	}
	if update {
		tr.forgetUnused()
		rewritten, err = tr.format(), tr.checkUse()
	}
	return rewritten, err
}

// A transcript is one parsed file.
type transcript struct {
	archive   *txtar.Archive
	half      string // of the two, the one under test: server or client
	revisions []string
	fixture   map[string]string
	steps     []*scriptStep
	tail      []string // lines after the last step
}

// A scriptStep is one thing that is done, and all that happens upon it.
type scriptStep struct {
	lead   []string // comments and blank lines before it
	line   int
	action string
	notes  []string // comments between what is expected
	expect []*scriptExpectation
	silent bool // it is said that nothing happens
}

// A scriptExpectation is one line of what happens.
type scriptExpectation struct {
	line   int
	text   string
	kind   string // its first word
	label  string // of the call that it is about; the method of a callback
	want   any    // parsed JSON, or a string
	answer string // to a callback
	group  int    // not 0: of an "any order" group
}

// A scriptEvent is something that happened.
type scriptEvent struct {
	kind, label string
	json        []byte // what came with it
	text        string // instead of json
	answer      func(string) error
}

// scriptActions are the first words of lines that do something, with the half that
// has them; scriptHappenings those of lines that say what happens.
var (
	scriptActions = map[string]string{
		"->": "", "raw": "", "let": "", "advance": "", "close": "", "eof": "", "app": "server",
		"connect": "client", "call": "client", "list": "client", "listen": "client", "unlisten": "client",
		"notify": "client", "level": "client", "answer": "client", "cancel": "client",
	}
	scriptHappenings = map[string]string{
		"<-": "", "closed": "", "saw": "server", "opened": "client",
		"result": "client", "error": "client", "fails": "client", "callback": "client", "ended": "client",
		"progress": "client", "log": "client", "change": "client",
	}
)

var scriptHeader = regexp.MustCompile(`^# (half|revision|requirements): (.+)$`)

func parseTranscript(text []byte) (*transcript, error) {
	tr := &transcript{archive: txtar.Parse(text), fixture: map[string]string{}}
	words := false
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(string(tr.archive.Comment), "\n"), "\n") {
		m := scriptHeader.FindStringSubmatch(line)
		switch {
		case line != "#" && !strings.HasPrefix(line, "# "):
			return nil, fmt.Errorf("%d: a line of the header starts with #", i+1)
		case m == nil:
			words = words || strings.Contains(line, ". ") || strings.HasSuffix(line, ".")
			continue
		}
		seen[m[1]] = true
		if err := tr.setHeader(m[1], strings.Fields(m[2])); err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	if len(seen) != 3 || !words {
		return nil, errors.New("1: the header has a sentence, and the lines half, revision and requirements")
	}
	files := tr.archive.Files
	if len(files) != 2 || files[0].Name != "fixture" || files[1].Name != "conversation" {
		return nil, errors.New("1: the sections are fixture and conversation")
	}
	offset := strings.Count(string(tr.archive.Comment), "\n") + 1
	for line := range strings.Lines(string(files[0].Data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		tr.fixture[key] = value
		offset++
	}
	return tr, tr.parseConversation(string(files[1].Data), offset+2)
}

func (tr *transcript) setHeader(key string, values []string) error {
	for _, value := range values {
		_, known := catalogue()[value]
		switch {
		case key == "half" && (value == "server" || value == "client"):
			tr.half = value
		case key == "revision" && revisionOf(value) != nil:
			tr.revisions = append(tr.revisions, value)
		case key == "requirements" && known:
		default:
			return fmt.Errorf("%s: %q is not known", key, value)
		}
	}
	return nil
}

func (tr *transcript) parseConversation(text string, first int) error {
	var lead []string
	var current *scriptStep
	group, groups := 0, 0
	for i, text := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line := first + i
		word, _, _ := strings.Cut(text, " ")
		half, isAction := scriptActions[word]
		other, happens := scriptHappenings[word]
		switch {
		case text == "" || word == "#":
			lead = append(lead, text)
			continue
		case text == "any order" && group == 0 && current != nil:
			groups++
			group = groups
			continue
		case text == "end" && group != 0:
			group = 0
			continue
		case isAction && (half == "" || half == tr.half) && group == 0:
			current = &scriptStep{lead: lead, line: line, action: text}
			tr.steps = append(tr.steps, current)
		case happens && (other == "" || other == tr.half) && current != nil:
			e, err := parseExpectation(text)
			if err != nil {
				return fmt.Errorf("%d: %w", line, err)
			}
			e.line, e.group = line, group
			current.notes = append(current.notes, lead...)
			if current.silent = e.want == nothingHappens; !current.silent {
				current.expect = append(current.expect, e)
			}
		default:
			return fmt.Errorf("%d: not a line of this half, or not here: %s", line, text)
		}
		lead = nil
	}
	tr.tail = lead
	if group != 0 {
		return fmt.Errorf("%d: a group without end", first)
	}
	return nil
}

// scriptName finds the names that stand for values.
var scriptName = regexp.MustCompile(`"\$([a-zA-Z0-9]+)(!?)"`)

// uses counts how often each placeholder stands in the transcript.
func (tr *transcript) uses() map[string]int {
	count := map[string]int{"any": 2, "text": 2, "version": 2}
	for _, s := range tr.steps {
		texts := []string{s.action}
		for _, e := range s.expect {
			texts = append(texts, e.text)
		}
		for _, text := range texts {
			if name, ok := strings.CutPrefix(text, "let "); ok {
				name, _, _ = strings.Cut(name, " ")
				count[name]++
			}
			for _, m := range scriptName.FindAllStringSubmatch(text, -1) {
				count[m[1]]++
			}
		}
	}
	return count
}

// checkUse refuses a transcript that compares nothing, and a placeholder that
// stands once only: it says nothing, and is most likely misspelt.
func (tr *transcript) checkUse() error {
	count := tr.uses()
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if count[name] < 2 {
			return fmt.Errorf("1: the placeholder $%s stands once only; $any and $text are for that", name)
		}
	}
	if !slices.ContainsFunc(tr.steps, func(s *scriptStep) bool { return s.silent || len(s.expect) > 0 }) {
		return errors.New("1: nothing is expected at all")
	}
	return nil
}

// forgetUnused takes back the names that were given to what nothing else
// mentions.
func (tr *transcript) forgetUnused() {
	count := tr.uses()
	for _, s := range tr.steps {
		for _, e := range s.expect {
			e.text = scriptName.ReplaceAllStringFunc(e.text, func(match string) string {
				name := scriptName.FindStringSubmatch(match)[1]
				switch {
				case count[name] > 1:
					return match
				case name[0] >= 'a':
					return `"$text"`
				}
				return `"$any"`
			})
		}
	}
}

// nothingHappens is what "<- nothing" expects.
const nothingHappens = "nothing"

var scriptLabel = regexp.MustCompile(`^([a-z]\w*) (.+)$`)

func parseExpectation(text string) (*scriptExpectation, error) {
	e := &scriptExpectation{text: text}
	word, rest, _ := strings.Cut(text, " ")
	e.kind = word
	switch word {
	case "closed", "opened":
		e.want = ""
		if rest != "" {
			return nil, fmt.Errorf("%s says no more", word)
		}
		return e, nil
	case "saw", "ended":
		e.want = rest
		return e, nil
	case "callback":
		e.label, rest, _ = strings.Cut(rest, " ")
		rest, e.answer, _ = strings.Cut(rest, " => ")
	case "result", "error", "fails", "progress", "change":
		if m := scriptLabel.FindStringSubmatch(rest); m != nil {
			e.label, rest = m[1], m[2]
		}
	}
	if word == "fails" || rest == nothingHappens && word == "<-" {
		e.want = rest
		return e, nil
	}
	var err error
	if e.want, err = parseTree([]byte(rest)); err != nil {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return e, err
}

// parseTree parses JSON and keeps the digits of its numbers.
func parseTree(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	return v, err
}

// format writes a transcript.
func (tr *transcript) format() []byte {
	var b bytes.Buffer
	lines := func(lines []string) {
		for _, line := range lines {
			fmt.Fprintln(&b, line)
		}
	}
	for _, s := range tr.steps {
		lines(s.lead)
		fmt.Fprintln(&b, s.action)
		lines(s.notes)
		group := 0
		for _, e := range s.expect {
			if group != 0 && e.group != group {
				fmt.Fprintln(&b, "end")
			}
			if e.group != 0 && e.group != group {
				fmt.Fprintln(&b, "any order")
			}
			group = e.group
			fmt.Fprintln(&b, e.text)
		}
		if group != 0 {
			fmt.Fprintln(&b, "end")
		}
		if len(s.expect) == 0 && (s.silent || silenceTold(s.action)) {
			fmt.Fprintln(&b, "<- nothing")
		}
	}
	lines(tr.tail)
	tr.archive.Files[1].Data = b.Bytes()
	return txtar.Format(tr.archive)
}

// silenceTold reports whether it is worth a line that nothing happens.
func silenceTold(action string) bool {
	word, _, _ := strings.Cut(action, " ")
	return (word == "->" || word == "raw") && !strings.Contains(action, "notifications/initialized")
}

// A scriptRun is a transcript being played.
type scriptRun struct {
	under   underTest
	vars    map[string]any // what placeholders stand for
	single  bool           // there is one revision only, so $version need not be written
	counter int            // of the names given by update

	mu     sync.Mutex
	wire   *wireEnd // the newest connection
	events []scriptEvent
	over   bool
}

// underTest is the half that is put to the test.
type underTest interface {
	// do does what the file tells of this half.
	do(word, rest string) error
	stop()
}

func (tr *transcript) play(version string, update bool) (err error) {
	r := &scriptRun{vars: map[string]any{"version": version}, single: len(tr.revisions) == 1}
	fixture := map[string]string{}
	for key, value := range tr.fixture {
		fixture[key] = strings.ReplaceAll(value, "$version", version)
	}
	if tr.half == "server" {
		r.under, err = newServerUnderTest(r, fixture)
	} else {
		r.under, err = newClientUnderTest(r, fixture)
	}
	if err != nil {
		return fmt.Errorf("1: fixture: %w", err)
	}
	defer r.stop()
	for _, s := range tr.steps {
		if err := r.do(s.action); err != nil {
			return fmt.Errorf("%d: %w", s.line, err)
		}
		synctest.Wait()
		vars := maps.Clone(r.vars)
		seen, err := r.check(s)
		if err != nil && !update {
			return err
		}
		if err != nil {
			r.vars = vars
			if s.expect, err = r.record(s, seen); err != nil {
				return fmt.Errorf("%d: %w", s.line, err)
			}
		}
	}
	return nil
}

func (r *scriptRun) stop() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.under.stop()
	synctest.Wait()
}

// do does what one line says.
func (r *scriptRun) do(action string) error {
	word, rest, _ := strings.Cut(action, " ")
	if word == "let" {
		name, value, _ := strings.Cut(rest, " ")
		v, err := parseTree([]byte(value))
		r.vars[name] = v
		return err
	}
	rest, err := r.substitute(rest)
	if err != nil {
		return err
	}
	switch word {
	case "->":
		return r.send([]byte(rest))
	case "raw":
		frame, err := strconv.Unquote(rest)
		if err != nil {
			return err
		}
		return r.send([]byte(frame))
	case "advance":
		d, err := time.ParseDuration(rest)
		time.Sleep(d)
		return err
	case "eof":
		if r.wire == nil || r.wire.eof {
			return errors.New("there is no connection")
		}
		r.wire.eof = true
		close(r.wire.in)
		return nil
	}
	return r.under.do(word, rest)
}

func (r *scriptRun) send(frame []byte) error {
	if r.wire == nil || r.wire.eof {
		return errors.New("there is no connection")
	}
	r.wire.in <- frame
	return nil
}

// substitute puts values for placeholders into what is done. "$name!" is a
// string that is not quite the one that $name stands for.
func (r *scriptRun) substitute(text string) (string, error) {
	var err error
	text = scriptName.ReplaceAllStringFunc(text, func(match string) string {
		m := scriptName.FindStringSubmatch(match)
		v, ok := r.vars[m[1]]
		if s, isString := v.(string); ok && m[2] == "!" {
			if ok = isString && s != ""; ok {
				v = spoil(s)
			}
		}
		if !ok {
			err = fmt.Errorf("nothing is known of %s yet", match)
		}
		return string(mustEncode(v, rev20260728))
	})
	return text, err
}

// spoil changes the character in the middle.
func spoil(s string) string {
	b := []byte(s)
	if i := len(b) / 2; b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// put notes that something happened.
func (r *scriptRun) put(e scriptEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.events = append(r.events, e)
	}
}

func (r *scriptRun) next() (e scriptEvent, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return e, false
	}
	e, r.events = r.events[0], r.events[1:]
	return e, true
}

// onWire tells what can be seen on the connection from what the program under
// test is told. Each has its order; between the two there is none.
func onWire(kind string) bool { return kind == "<-" || kind == "closed" || kind == "opened" }

// check compares what happened with what a step expects: all of it, and
// nothing else. It returns what it has seen.
func (r *scriptRun) check(s *scriptStep) (seen []scriptEvent, err error) {
	for rest := s.expect; ; {
		got, ok := r.next()
		switch {
		case !ok && len(rest) == 0:
			return seen, nil
		case !ok:
			return seen, fmt.Errorf("%d: this did not happen: %s", rest[0].line, rest[0].text)
		}
		seen = append(seen, got)
		first := slices.IndexFunc(rest, func(e *scriptExpectation) bool { return onWire(e.kind) == onWire(got.kind) })
		if first < 0 {
			return seen, fmt.Errorf("%d: this was not expected: %s", s.line, got.render(string(got.json), "later"))
		}
		group := rest[first].group
		var miss error
		i := slices.IndexFunc(rest, func(e *scriptExpectation) bool {
			if e != rest[first] && (group == 0 || e.group != group) {
				return false
			}
			vars := maps.Clone(r.vars)
			if miss = e.meets(got, vars); miss == nil {
				r.vars = vars
			}
			return miss == nil
		})
		if i < 0 {
			return seen, fmt.Errorf("%d: %w\ngot %s", rest[first].line, miss, got.render(string(got.json), "later"))
		}
		if got.answer != nil {
			if err := r.reply(got, rest[i].answer); err != nil {
				return seen, fmt.Errorf("%d: %w", rest[i].line, err)
			}
			seen[len(seen)-1].answer = nil
			synctest.Wait()
		}
		rest = append(slices.Clone(rest[:i]), rest[i+1:]...)
	}
}

func (r *scriptRun) reply(e scriptEvent, answer string) error {
	answer, err := r.substitute(answer)
	if err == nil {
		err = e.answer(answer)
	}
	return err
}

// meets compares an event with what is expected, and binds placeholders.
func (e *scriptExpectation) meets(got scriptEvent, vars map[string]any) error {
	if e.kind != got.kind || e.label != got.label {
		return fmt.Errorf("expected %s", e.text)
	}
	var value any = got.text
	if got.json != nil {
		if name := repeatedMember(got.json); name != nil {
			return fmt.Errorf("the member %q stands twice", name)
		}
		var err error
		if value, err = parseTree(got.json); err != nil {
			return err
		}
	}
	return compareTrees(e.want, value, vars, "it")
}

// compareTrees compares two JSON values: numbers to the digit, members all of
// them. Placeholders in want stand for what they stood for the first time.
func compareTrees(want, got any, vars map[string]any, path string) error {
	if s, ok := want.(string); ok {
		if m := scriptName.FindStringSubmatch(`"` + s + `"`); m != nil && m[2] == "" {
			text, isText := got.(string)
			bound, known := vars[m[1]]
			switch {
			case m[1] == "any" || m[1] == "text" && isText && text != "":
				return nil
			case known:
				want = bound
			case m[1] != "text":
				vars[m[1]] = got
				return nil
			}
		}
	}
	differs := fmt.Errorf("%s: expected %s", path, mustEncode(want, rev20260728))
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return differs
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[name]; !ok {
				return fmt.Errorf("%s.%s is not expected", path, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := got[name]; !ok {
				return fmt.Errorf("%s.%s is missing", path, name)
			}
			if err := compareTrees(want[name], got[name], vars, path+"."+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return differs
		}
		for i := range want {
			if err := compareTrees(want[i], got[i], vars, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if want != got {
		return differs
	}
	return nil
}

// render writes an event as a line.
func (e scriptEvent) render(payload, answer string) string {
	line := e.kind
	for _, part := range []string{e.label, payload, e.text} {
		if part != "" {
			line += " " + part
		}
	}
	if e.kind == "callback" {
		line += " => " + answer
	}
	return line
}

// record makes the expectations of a step from what happened.
func (r *scriptRun) record(s *scriptStep, seen []scriptEvent) (lines []*scriptExpectation, err error) {
	old := map[string][]*scriptExpectation{} // by kind and label
	group := 0
	for _, e := range s.expect {
		old[e.kind+" "+e.label] = append(old[e.kind+" "+e.label], e)
		group = max(group, e.group)
	}
	for {
		var e scriptEvent
		if len(seen) > 0 {
			e, seen = seen[0], seen[1:]
		} else if next, ok := r.next(); ok {
			e = next
		} else {
			return lines, nil
		}
		var was any
		answer := "later"
		if olds := old[e.kind+" "+e.label]; len(olds) > 0 {
			was, answer = olds[0].want, olds[0].answer
			old[e.kind+" "+e.label] = olds[1:]
		}
		payload := ""
		if e.json != nil {
			payload = string(r.name(nil, &scanner{data: e.json}, was, "", rawMember(e.json, "method")))
		}
		line, err := parseExpectation(e.render(payload, answer))
		if err == nil && e.answer != nil {
			err = r.reply(e, answer)
			synctest.Wait()
		}
		if err != nil {
			return nil, err
		}
		line.group = group
		lines = append(lines, line)
	}
}

// name copies JSON and puts placeholders for what varies: where was has one,
// for long values that are known, and in the places that freshName knows.
func (r *scriptRun) name(dst []byte, s *scanner, was any, path string, method []byte) []byte {
	start := *s
	raw := s.skip()
	if name := r.nameFor(raw, was, path, method); name != "" {
		return append(dst, `"$`+name+`"`...)
	}
	*s = start
	switch s.peek() {
	case '{':
		members, _ := was.(map[string]any)
		dst = append(dst, '{')
		s.open('{')
		for n := 0; s.more('}', n); n++ {
			key := string(s.key())
			dst = r.name(appendKey(dst, key, n == 0), s, members[key], path+"."+key, method)
		}
		return append(dst, '}')
	case '[':
		elements, _ := was.([]any)
		dst = append(dst, '[')
		s.open('[')
		for n := 0; s.more(']', n); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			var element any
			if n < len(elements) {
				element = elements[n]
			}
			dst = r.name(dst, s, element, path+"[]", method)
		}
		return append(dst, ']')
	}
	return append(dst, s.skip()...)
}

func (r *scriptRun) nameFor(raw []byte, was any, path string, method []byte) string {
	value, _ := parseTree(raw)
	if s, ok := was.(string); ok {
		if m := scriptName.FindStringSubmatch(`"` + s + `"`); m != nil && compareTrees(s, value, r.vars, "") == nil {
			return m[1]
		}
	}
	ours := path == ".id" && method != nil
	theirs := path == ".params.requestId" || path == ".progressToken"
	for _, name := range slices.Sorted(maps.Keys(r.vars)) {
		if path == ".progressToken" && !strings.HasPrefix(name, "token") {
			continue
		}
		if (theirs || len(raw) > 8) && (name != "version" || !r.single) && compareTrees(r.vars[name], value, nil, "") == nil {
			return name
		}
	}
	fresh := map[string]string{
		".result.requestState": "state", ".result.nextCursor": "cursor",
		".params.elicitationId": "elicitation", ".params._meta.progressToken": "token",
	}[path]
	switch {
	case strings.HasSuffix(path, ".content[].text") && bytes.HasPrefix(raw, []byte(`"invalid arguments`)):
		return "text"
	case path == ".error.message" || path == "[].error.message" || path == ".params.reason":
		if was == value {
			return ""
		}
		return "text"
	case ours:
		r.counter++
		fresh = strconv.Itoa(r.counter)
	case fresh == "":
		return ""
	}
	for n := 2; r.vars[fresh] != nil; n++ {
		fresh = fmt.Sprint(strings.TrimRight(fresh, "0123456789"), n)
	}
	r.vars[fresh] = value
	return fresh
}

const goodTranscript = `# A ping.
#
# half: server
# revision: 2025-11-25
# requirements: ping.respond
-- fixture --
server kit
-- conversation --
-> {"jsonrpc":"2.0","id":1,"method":"ping"}
<- {"jsonrpc":"2.0","id":1,"result":{}}
-> {"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"$version","capabilities":{},"clientInfo":{"name":"peer","version":"1"}}}
<- {"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"$version","capabilities":"$caps","serverInfo":{"version":"1","name":"kit"}}}
-> {"jsonrpc":"2.0","method":"notifications/initialized"}
<- nothing
-> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"$version","capabilities":"$caps","clientInfo":{"name":"peer","version":"1"}}}
<- {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"$text"}}
-> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":1000}}}
<- nothing
-> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":1000}}}
<- nothing
advance 1s
any order
<- {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"slept"}]}}
<- {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"slept"}]}}
end
`

// TestTranscriptRunner shows that a transcript fails when anything in it is
// not so: the good one with one change each.
func TestTranscriptRunner(t *testing.T) {
	if _, err := playTranscript(t, []byte(goodTranscript), false); err != nil {
		t.Fatalf("the good one:%v", err)
	}
	for _, c := range []struct{ was, is, want string }{
		{"A ping.", "ping", "a sentence"},
		{"# half: server\n", "", "half"},
		{"half: server", "half: both", "not known"},
		{"revision: 2025-11-25", "revision: 2025-11-26", "not known"},
		{"requirements: ping.respond", "requirements: ping.no-such", "not known"},
		{"requirements: ping.respond", "requires: ping.respond", "half, revision and requirements"},
		{"-- fixture --", "-- fixtures --", "sections"},
		{"server kit", "server kitt", "no such server"},
		{"server kit", "server kit\npages 7", "no such line"},
		{"advance 1s", "advance", "invalid duration"},
		{"advance 1s", "wait 1s", "not a line"},
		{"advance 1s", "connect", "not a line"},
		{"advance 1s", "app sing", "cannot sing"},
		{"any order\n", "", "not a line"},
		{"end\n", "", "without end"},
		{"<- nothing", "result {}", "not a line"},
		{"<- nothing", "<- nothin", "invalid character"},
		{`"id":2,"error"`, `"id":2,,"error"`, "invalid character"},
		{`"id":1,"result":{}`, `"id":"1","result":{}`, "it.id: expected"},
		{`"id":1,"result":{}`, `"id":1.0,"result":{}`, "it.id: expected"},
		{`"id":1,"result":{}`, `"id":1`, "it.result is not expected"},
		{`"id":1,"result":{}`, `"id":1,"result":{},"more":null`, "it.more is missing"},
		{`"id":1,"result":{}`, `"id":1,"result":[]`, "it.result: expected"},
		{`"id":1,"result":{}`, `"id":1,"result":{"a":1}`, "it.result.a is missing"},
		{`<- {"jsonrpc":"2.0","id":1,"result":{}}` + "\n", "", "was not expected"},
		{"<- nothing", `<- {"jsonrpc":"2.0","id":9,"result":{}}`, "did not happen"},
		{"<- nothing", "saw it", "did not happen"},
		{"<- nothing", "closed", "did not happen"},
		{`"message":"$text"`, `"message":"$caps"`, "expected {"},
		{`"code":-32600`, `"code":"$text"`, "expected"},
		{`"capabilities":"$caps","serverInfo"`, `"capabilities":"$any","serverInfo"`, "$caps stands once only"},
		{`"code":-32600`, `"code":"$code"`, "$code stands once only"},
		{"-> {\"jsonrpc\":\"2.0\",\"id\":1", "let x 1\n-> {\"jsonrpc\":\"2.0\",\"id\":1", "$x stands once only"},
		{`-> {"jsonrpc":"2.0","id":1,"method":"ping"}`, `-> {"jsonrpc":"2.0","id":"$caps","method":"ping"}`, "nothing is known"},
		{`"id":4,"result":{"content":[{`, `"id":4,"result":{"content":[{"x":1},{`, "expected"},
		{`"id":4,"result"`, `"id":5,"result"`, "expected"},
	} {
		text := strings.Replace(goodTranscript, c.was, c.is, 1)
		if text == goodTranscript {
			t.Errorf("%q is not in the good one", c.was)
		}
		if _, err := playTranscript(t, []byte(text), false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %q for %q: %v, not an error with %q", c.is, c.was, err, c.want)
		}
	}
	nothing, _, _ := strings.Cut(goodTranscript, "<- ")
	if _, err := playTranscript(t, []byte(nothing), false); err == nil || !strings.Contains(err.Error(), "nothing is expected") {
		t.Errorf("a transcript that expects nothing: %v", err)
	}
}

// TestTranscriptUpdate shows that update writes what happens, keeps what was
// right, and gives names to what varies.
func TestTranscriptUpdate(t *testing.T) {
	bad := strings.Replace(goodTranscript, `"id":1,"result":{}`, `"id":7`, 1)
	bad = strings.Replace(bad, `"$text"`, `"wrong"`, 1)
	got, err := playTranscript(t, []byte(bad), true)
	if err != nil || string(got) != goodTranscript {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, goodTranscript)
	}
}
