package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Fuzz targets for what peers send, each with a second reading to compare
// with, made of encoding/json or by hand. What belongs to one room is fuzzed
// in that room's tests: FuzzAppendString, FuzzSchema, FuzzInfer, FuzzDefaults, FuzzValidate, FuzzTag, FuzzDecodeAt,
// FuzzDecodeArguments, FuzzTemplate. The inputs in testdata/fuzz are chosen,
// not found: each stands for something that a peer may do.

// An envelope is what a slow and strict reader makes of a frame.
type envelope struct {
	code       int // why the frame is refused; 0 when it is not
	isResponse bool
	id, method string // id as it is written
	members    map[string]json.RawMessage
	errorCode  int
	message    string
}

// strictEnvelope reads one message with encoding/json alone.
func strictEnvelope(frame []byte) (e envelope) {
	text := bytes.TrimPrefix(frame, []byte("\xEF\xBB\xBF"))
	if !json.Valid(text) || !utf8.Valid(text) {
		return envelope{code: CodeParseError}
	}
	names, values := strictMembers(text)
	if names == nil {
		return envelope{code: CodeInvalidRequest}
	}
	e.members = map[string]json.RawMessage{}
	for i, name := range names {
		if _, twice := e.members[name]; twice && slices.Contains([]string{"jsonrpc", "id", "method", "params", "result", "error"}, name) {
			e.code = CodeInvalidRequest
		}
		e.members[name] = values[i]
	}
	_, hasMethod := e.members["method"]
	result, hasError := e.members["result"], e.members["error"] != nil
	e.isResponse = !hasMethod && (result != nil || hasError)
	id, hasID := e.members["id"]
	isNull := string(id) == "null"
	if hasID && slices.Index(names, "id") == lastIndex(names, "id") && !(isNull && hasError && !hasMethod) {
		if id[0] != '"' && (strings.Trim(string(id), "-0123456789") != "") {
			e.code = CodeInvalidRequest
		} else {
			e.id = string(id)
		}
	}
	count := 0
	for _, there := range []bool{hasMethod, result != nil, hasError} {
		if there {
			count++
		}
	}
	switch json.Unmarshal(e.members["method"], &e.method); {
	case string(e.members["jsonrpc"]) != `"2.0"`, count != 1, hasMethod && e.method == "", result != nil && e.id == "":
		e.code = CodeInvalidRequest
	case hasError && !e.strictError():
		e.code = CodeInvalidRequest
	}
	return e
}

// strictError reads the error member.
func (e *envelope) strictError() bool {
	names, values := strictMembers(e.members["error"])
	var hasCode, hasMessage bool
	for i, name := range names {
		switch null := string(values[i]) == "null"; name {
		case "code":
			hasCode = !null && json.Unmarshal(values[i], &e.errorCode) == nil
			if !hasCode {
				return false
			}
		case "message":
			hasMessage = !null && json.Unmarshal(values[i], &e.message) == nil
			if !hasMessage {
				return false
			}
		}
	}
	return hasCode && hasMessage
}

// strictMembers returns the members of a valid JSON object in their order;
// names is nil for any other value.
func strictMembers(text []byte) (names []string, values []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, _ := d.Token(); open != json.Delim('{') {
		return nil, nil
	}
	names = []string{}
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, nil
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values
}

func lastIndex(names []string, name string) int {
	for i, n := range slices.Backward(names) {
		if n == name {
			return i
		}
	}
	return -1
}

// FuzzEnvelope: a frame is accepted, refused and split just as the strict
// reading does it, is not written to, and comes back as the same message when
// it is written and read again.
func FuzzEnvelope(f *testing.F) {
	for _, text := range append(jsonCases.good, jsonCases.bad...) {
		if len(text) < 1000 {
			f.Add([]byte(text))
			f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":` + text + `}`))
			f.Add([]byte(`{"jsonrpc":"2.0","id":` + text + `,"error":{"code":-1,"message":` + text + `,"data":` + text + `}}`))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		m, isResponse, invalid := decodeMessage(frame)
		checkBatch(t, frame)
		if !bytes.Equal(frame, before) {
			t.Fatal("the frame was written to")
		}
		want := strictEnvelope(frame)
		code := 0
		if invalid != nil {
			code = invalid.Code
		}
		if code != want.code || code != CodeParseError && (isResponse != want.isResponse || m.ID.String() != want.id) {
			t.Fatalf("%q: code %d, response %v, id %s; want %d, %v, %s", frame, code, isResponse, m.ID, want.code, want.isResponse, want.id)
		}
		if invalid != nil {
			return
		}
		if m.Method != want.method || !bytes.Equal(m.Params, want.members["params"]) || !bytes.Equal(m.Result, want.members["result"]) {
			t.Fatalf("%q was read as %+v", frame, m)
		}
		if m.Error != nil && (m.Error.Code != want.errorCode || m.Error.Message != want.message) {
			t.Fatalf("%q has the error %+v", frame, m.Error)
		}
		checkWritten(t, m)
	})
}

// checkBatch compares splitBatch with encoding/json.
func checkBatch(t *testing.T, frame []byte) {
	var want []json.RawMessage
	text := bytes.TrimPrefix(frame, []byte("\xEF\xBB\xBF"))
	isBatch := utf8.Valid(text) && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) && json.Unmarshal(text, &want) == nil
	var got [][]byte
	members, ok := splitBatch(frame)
	if ok {
		got = slices.Collect(members)
	}
	if ok != isBatch || ok && !slices.EqualFunc(got, want, func(a []byte, b json.RawMessage) bool { return bytes.Equal(a, bytes.Trim(b, " \t\r\n")) }) {
		t.Fatalf("%q is a batch %v of %q; want %v, %q", frame, ok, got, isBatch, want)
	}
}

// checkWritten writes a message and reads it again.
func checkWritten(t *testing.T, m Message) {
	var again []byte
	switch {
	case m.IsRequest():
		again = appendRequest(nil, m.ID, m.Method, m.Params)
	case m.Method != "":
		again = appendNotification(nil, m.Method, m.Params)
	case m.Error != nil:
		again = appendError(nil, m.ID, m.Error)
	default:
		again = append(append(appendResultHead(nil, m.ID), m.Result...), '}')
	}
	n, _, invalid := decodeMessage(again)
	if invalid != nil {
		t.Fatalf("%+v was written as %q: %v", m, again, invalid)
	}
	if m.Error != nil {
		if m.Error.Code == 0 { // never written
			m.Error.Code = CodeInternalError
		}
		if m.Error.Code != n.Error.Code || m.Error.Message != n.Error.Message || !sameJSON(m.Error.Data, n.Error.Data) {
			t.Fatalf("%+v was written as %q", m.Error, again)
		}
	}
	if m.ID != n.ID || m.Method != n.Method || !bytes.Equal(m.Params, n.Params) || !bytes.Equal(m.Result, n.Result) {
		t.Fatalf("%+v was written as %q", m, again)
	}
}

// chunks reads what it holds in pieces of the given sizes, over and over.
type chunks struct {
	data  []byte
	sizes []byte
	n     int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	size := len(c.data)
	if len(c.sizes) > 0 {
		size = int(c.sizes[c.n%len(c.sizes)])%32 + 1
		c.n++
	}
	n := copy(p, c.data[:min(size, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

// FuzzLines: however a stream of bytes comes in, it has the lines that it has
// when split at its newlines by hand; blank ones are passed over, and those
// that are too long refused, one by one.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\r\n\n \t\r\n[1]\xe2\x80\xa8\x0c\n\r\r\nlast"), []byte{0, 3}, uint8(3), uint8(0))
	f.Add([]byte(strings.Repeat("x", 100)+"\r\n"+strings.Repeat("y", 17)+"\r\nz\r"), []byte{15}, uint8(17), uint8(1))
	f.Fuzz(func(t *testing.T, data, sizes []byte, limit, buffer uint8) {
		longest := int(limit) + 1
		var want []string
		const tooLong = "\ntoo long"
		rest := data
		for len(rest) > 0 {
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			rest = after
			line = bytes.TrimSuffix(line, []byte("\r"))
			switch {
			case len(line) > longest:
				want = append(want, tooLong)
			case strings.Trim(string(line), " \t\r") != "":
				want = append(want, string(line))
			}
		}
		lines := lineReader{r: bufio.NewReaderSize(&chunks{data: data, sizes: sizes}, 16+int(buffer)), max: longest}
		var got []string
		var frames [][]byte
		for {
			frame, err := lines.next()
			var bad *Error
			if errors.As(err, &bad) && bad.Code == CodeInvalidRequest {
				got = append(got, tooLong)
				continue
			} else if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			got, frames = append(got, string(frame)), append(frames, frame)
			for _, mine := range frames[:len(frames)-1] {
				clear(mine[:cap(mine)]) // a frame is its caller's, all of it
			}
			if cap(frame) > 2*(longest+len("\r\n"))+16+int(buffer) {
				t.Fatalf("a line of %d bytes takes %d", len(frame), cap(frame))
			}
			if string(frame) != got[len(got)-1] {
				t.Fatal("two frames share memory")
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("at most %d bytes: %q\nwant %q", longest, got, want)
		}
	})
}

// repeats reports whether some object within a valid JSON value has a member
// twice.
func repeats(value json.RawMessage) bool {
	if names, values := strictMembers(value); names != nil {
		seen := map[string]bool{}
		for i, name := range names {
			if seen[name] || repeats(values[i]) {
				return true
			}
			seen[name] = true
		}
		return false
	}
	var elements []json.RawMessage
	return json.Unmarshal(value, &elements) == nil && slices.ContainsFunc(elements, repeats)
}

// kinds of members in the shapes below. A strict reader takes null for none
// of them.
var memberKinds = map[string]func(raw json.RawMessage) bool{
	"string": func(raw json.RawMessage) bool { return raw[0] == '"' },
	"object": func(raw json.RawMessage) bool { return raw[0] == '{' },
	"number": func(raw json.RawMessage) bool {
		var n float64
		return raw[0] != 'n' && json.Unmarshal(raw, &n) == nil
	},
	"id": func(raw json.RawMessage) bool {
		return raw[0] == '"' || strings.Trim(string(raw), "-0123456789") == ""
	},
	"strings": func(raw json.RawMessage) bool {
		_, values := strictMembers(raw)
		return raw[0] == '{' && !slices.ContainsFunc(values, func(v json.RawMessage) bool { return v[0] != '"' })
	},
}

// paramsShapes say what a strict reader makes of some params: their members
// and the kind of each, with ! when it is required. They are of 2025-11-25.
var paramsShapes = []struct {
	params any
	shape  string
}{
	{ListParams{}, "cursor string"},
	{SubscribeParams{}, "uri string!"},
	{GetPromptParams{}, "name string!, arguments strings"},
	{CancelledParams{}, "requestId id, reason string"},
	{ProgressParams{}, "progressToken id!, progress number!, total number, message string"},
	{SetLevelParams{}, "level string!"},
	{CompleteArgument{}, "name string!, value string!"},
}

func fitsShape(object json.RawMessage, shape string) bool {
	names, values := strictMembers(object)
	if names == nil {
		return false
	}
	for _, member := range strings.Split(shape+", _meta object", ", ") {
		name, kind, _ := strings.Cut(member, " ")
		kind, required := strings.CutSuffix(kind, "!")
		i := slices.Index(names, name)
		if i < 0 && required || i >= 0 && !memberKinds[kind](values[i]) {
			return false
		}
	}
	return true
}

// FuzzParams: what is found in params, and whether they are refused, is what a
// reader with encoding/json finds. The envelope has checked that they are JSON.
func FuzzParams(f *testing.F) {
	f.Add([]byte(`{"name":"a","uri":"b","arguments":{"a":1},"requestState":"s","inputResponses":{},"_meta":{"progressToken":0}}`))
	f.Add([]byte(`{"progressToken":"","progress":0.5,"total":1e3,"message":"m","_meta":{"a/b":null}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if validJSON(params) != nil || bytes.HasPrefix(params, []byte("\uFEFF")) {
			return
		}
		params = bytes.Trim(params, " \t\r\n")
		twice := repeatedMember(params) != nil
		if want := repeats(params); twice != want {
			t.Fatalf("%q repeats a member: %v, want %v", params, twice, want)
		}
		if twice {
			return
		}
		checkScan(t, params)
		for _, c := range paramsShapes {
			v := reflect.New(reflect.TypeOf(c.params))
			err := decodeAt(params, v.Interface(), rev20251125, true)
			if want := fitsShape(params, c.shape); (err == nil) != want {
				t.Fatalf("%s read as %T: %v, want %v", params, c.params, err, want)
			}
		}
	})
}

// checkScan compares scanParams with maps of encoding/json.
func checkScan(t *testing.T, params []byte) {
	v, bad := scanParams(params)
	var members, meta map[string]json.RawMessage
	isObject := func(raw []byte, m *map[string]json.RawMessage) bool {
		return raw[0] == '{' && json.Unmarshal(raw, m) == nil
	}
	good := isObject(params, &members)
	if raw := members["_meta"]; raw != nil {
		good = good && isObject(raw, &meta)
	}
	if token := meta["progressToken"]; token != nil {
		good = good && memberKinds["id"](token)
	}
	if good != (bad == nil) {
		t.Fatalf("%s: %v, want good %v", params, bad, good)
	}
	if !good {
		return
	}
	for _, c := range []struct{ got, want []byte }{
		{v.name, members["name"]}, {v.uri, members["uri"]}, {v.arguments, members["arguments"]}, {v.meta, members["_meta"]},
		{v.inputResponses, members["inputResponses"]}, {v.requestState, members["requestState"]},
		{v.progressToken, meta[metaProgressToken]}, {v.version, meta[metaProtocolVersion]}, {v.capabilities, meta[metaClientCapabilities]},
		{v.info, meta[metaClientInfo]}, {v.logLevel, meta[metaLogLevel]},
	} {
		if !bytes.Equal(c.got, c.want) {
			t.Fatalf("%s: found %q, want %q", params, c.got, c.want)
		}
	}
}

// splice puts text in the place of some bytes of s.
func splice(s string, at, gone uint8, text string) string {
	from := min(int(at), len(s))
	return s[:from] + text + s[min(from+int(gone), len(s)):]
}

// FuzzCursors: a list goes on from a cursor only if this server wrote that
// very text for that very list.
func FuzzCursors(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint8(1), uint8(26), uint8(1), "B")
	f.Add(uint8(3), uint8(0), uint8(2), uint8(4), uint8(0), "\n")
	f.Add(uint8(1), uint8(1), uint8(0), uint8(0), uint8(255), "AAAAAAAAAAE")
	f.Add(uint8(2), uint8(2), uint8(0), uint8(0), uint8(0), "")
	methods := []string{methodToolsList, methodResourcesList, methodTemplatesList, methodPromptsList}
	key := newSealer([][]byte{[]byte("a key of some length")}).cursors
	var entries registry[int]
	for i := range 4 {
		entries.put(fmt.Sprint(i), i)
	}
	written := make([][]string, len(methods))
	for i, method := range methods {
		var cursor *string
		for range 3 {
			_, next, bad := entries.page(&cursorKey{key, method}, cursor, 1, nil)
			if bad != nil || next == nil {
				f.Fatal(bad, next)
			}
			written[i] = append(written[i], *next)
			cursor = next
		}
	}
	f.Fuzz(func(t *testing.T, list, from, which, at, gone uint8, text string) {
		method := int(list) % len(methods)
		cursor := splice(written[int(from)%len(methods)][which%3], at, gone, text)
		values, _, bad := entries.page(&cursorKey{key, methods[method]}, &cursor, 1, nil)
		n := slices.Index(written[method], cursor)
		if (bad == nil) != (n >= 0) || bad == nil && (len(values) != 1 || values[0] != n+1) {
			t.Fatalf("%s from %q: %v, %v", methods[method], cursor, values, bad)
		}
		if bad != nil && bad.Code != CodeInvalidParams {
			t.Fatal(bad)
		}
	})
}

// FuzzSealedState: state opens again only as the very text that was sealed,
// and only for a request of the same method, name, arguments and principal.
func FuzzSealedState(f *testing.F) {
	f.Add("plain", "tools/call", "a", `{"x":1}`, "me", "tools/call", "a", ` { "x" : 1 } `, "me", uint8(0), uint8(0), "")
	f.Add("", "tools/call", "a", ``, "", "tools/call", "", `a`, "", uint8(40), uint8(1), "\r\n")
	f.Add("p", "ab", "c", `null`, "", "a", "bc", `null`, "", uint8(255), uint8(1), "_")
	f.Add("p", "m", "n", `{"a":1.0}`, "", "m", "n", `{"a":1}`, "", uint8(255), uint8(0), "=")
	seal := newSealer([][]byte{[]byte("a key of some length")})
	rotated := newSealer([][]byte{[]byte("a newer key of some length"), []byte("a key of some length")})
	other := newSealer([][]byte{[]byte("another key of some length")})
	asked := func(method, name, arguments, principal string) (*Request, any) {
		req := &Request{Method: method, Principal: principal, params: new(paramsView)}
		req.params.name = appendString(nil, name)
		var value any = "absent"
		if validJSON([]byte(arguments)) == nil && !strings.HasPrefix(arguments, "\uFEFF") {
			req.params.arguments = []byte(arguments)
			d := json.NewDecoder(strings.NewReader(arguments))
			d.UseNumber()
			d.Decode(&value)
			value = []any{value}
		}
		return req, []any{method, strings.ToValidUTF8(name, "\uFFFD"), value, principal}
	}
	f.Fuzz(func(t *testing.T, plain, method1, name1, args1, me1, method2, name2, args2, me2 string, at, gone uint8, text string) {
		first, what1 := asked(method1, name1, args1, me1)
		second, what2 := asked(method2, name2, args2, me2)
		if repeats(first.params.arguments) || repeats(second.params.arguments) || !utf8.ValidString(name1+name2) {
			return // never gets here
		}
		sealed := seal.seal([]byte(plain), binding(first))
		for _, s := range []*sealer{seal, rotated} {
			if got, ok := s.open(sealed, binding(first)); !ok || string(got) != plain {
				t.Fatalf("what was sealed opens as %q, %v", got, ok)
			}
		}
		if _, ok := other.open(sealed, binding(first)); ok {
			t.Fatal("another key opens it")
		}
		if _, ok := seal.open(sealed, binding(second)); ok != reflect.DeepEqual(what1, what2) {
			t.Fatalf("sealed for %q, opened for %q: %v", what1, what2, ok)
		}
		altered := splice(sealed, at, gone, text)
		if _, ok := seal.open(altered, binding(first)); ok != (altered == sealed) {
			t.Fatalf("%q opens as what was sealed as %q: %v", altered, sealed, ok)
		}
		if again := seal.seal([]byte(plain), binding(first)); again == sealed {
			t.Fatal("sealed twice in the same way")
		}
	})
}
