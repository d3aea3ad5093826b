package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIDsComeBackAsTheyCame(t *testing.T) {
	shows(t, "base.id.type", "base.response.same-id")
	ids := []string{
		`0`, `-0`, `-1`, `1`, `"1"`, `"001"`, `""`, `" "`, `2147483648`, `1774232524389`,
		`9007199254740992`, `9007199254740993`, `"9007199254740993"`, `9223372036854775807`,
		`123456789012345678901234567890`, `"é\u0000"`, `"\ud800"`, `"<&>"`, `"null"`,
	}
	seen := map[ID]string{}
	for _, text := range ids {
		m, _, invalid := decodeMessage([]byte(`{"jsonrpc":"2.0", "id" : ` + text + ` ,"method":"ping"}`))
		if invalid != nil {
			t.Errorf("%s: %v", text, invalid)
			continue
		}
		if !m.IsRequest() || m.ID.IsZero() || m.ID.String() != text {
			t.Errorf("%s became %s", text, m.ID)
		}
		if other, ok := seen[m.ID]; ok {
			t.Errorf("%s and %s are one id", text, other)
		}
		seen[m.ID] = text

		frame := append(appendResultHead(nil, m.ID), `{}}`...)
		if want := `{"jsonrpc":"2.0","id":` + text + `,"result":{}}`; string(frame) != want {
			t.Errorf("the answer is %s", frame)
		}
		if m, _, invalid := decodeMessage(frame); invalid != nil || m.ID.String() != text {
			t.Errorf("the answer is read as %+v, %v", m, invalid)
		}
		var again struct{ ID ID }
		if data, err := json.Marshal(m); err != nil {
			t.Error(err)
		} else if err := json.Unmarshal(data, &again); err != nil || again.ID.IsZero() {
			t.Errorf("%s through encoding/json: %v", text, err)
		}
	}
	if IntID(1) == StringID("1") || IntID(9007199254740993).String() != "9007199254740993" || StringID("a\"\n").String() != `"a\"\n"` {
		t.Error("ids made here")
	}
	if data, err := json.Marshal(ID{}); string(data) != "null" || err != nil {
		t.Errorf("the zero id is written %s, %v", data, err)
	}
}

func TestIDsRefused(t *testing.T) {
	shows(t, "base.id.type", "base.id.not-null")
	for _, text := range []string{`null`, `1.5`, `1.0`, `1e400`, `1E2`, `{}`, `[]`, `[1]`, `true`, `false`} {
		m, isResponse, invalid := decodeMessage([]byte(`{"jsonrpc":"2.0","id":` + text + `,"method":"tools/list"}`))
		if invalid == nil || invalid.Code != CodeInvalidRequest || isResponse || !m.ID.IsZero() {
			t.Errorf("%s: id %q, %v", text, m.ID, invalid)
		}
		_, isResponse, invalid = decodeMessage([]byte(`{"jsonrpc":"2.0","id":` + text + `,"result":{}}`))
		if invalid == nil || invalid.Code != CodeInvalidRequest || !isResponse {
			t.Errorf("%s in a response: %v", text, invalid)
		}
		var id ID
		if err := json.Unmarshal([]byte(text), &id); err == nil && text != "null" {
			t.Errorf("%s through encoding/json: no error", text)
		}
	}
}

// TestDecodeMessage goes through the forms of an envelope. want is what was
// read, as describeEnvelope puts it: what is refused starts with the error's code.
func TestDecodeMessage(t *testing.T) {
	shows(t, "base.jsonrpc.conform", "base.response.exclusive", "base.error.object", "base.error.data-any")
	const parse, refused = "-32700", "-32600"
	for _, c := range []struct{ name, frame, want string }{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `request 1 ping`},
		{"params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.50,"b":[ ]}}`, `request 1 m {"a":1.50,"b":[ ]}`},
		{"params of any kind", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `request 1 m null`},
		{"params with numbers beyond float64", `{"id":1,"method":"m","params":[1e400,9007199254740993],"jsonrpc":"2.0"}`, `request 1 m [1e400,9007199254740993]`},
		{"method after params", `{"params":{},"method":"m","id":"x","jsonrpc":"2.0"}`, `request "x" m {}`},
		{"white space", " \t\r\n{ \"jsonrpc\" : \"2.0\" , \"method\" : \"m\" , \"params\" : [ 1 ,\n2 ] } \r\n", "notification m [ 1 ,\n2 ]"},
		{"escapes in names", `{"\u006asonrpc":"2.0","meth\u006fd":"tools\/list"}`, `notification tools/list`},
		{"unknown members", `{"jsonrpc":"2.0","method":"m","more":{"id":7},"":0}`, `notification m`},
		{"long method", `{"jsonrpc":"2.0","method":"` + strings.Repeat("m", 5000) + `"}`, `notification ` + strings.Repeat("m", 5000)},
		{"byte order mark", "\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", `notification m`},
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"a":null}}`, `result 1 {"a":null}`},
		{"result null", `{"jsonrpc":"2.0","id":1,"result":null}`, `result 1 null`},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}`, `error 1 -32601 no [1]`},
		{"error data null", `{"jsonrpc":"2.0","id":1,"error":{"message":"","data":null,"code":7,"more":1}}`, `error 1 7  null`},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, `error  -32700 x`},
		{"error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, `error  -32700 x`},

		// exact names (F01): what only resembles a name is an unknown member
		{"Method beside method", `{"jsonrpc":"2.0","id":2,"method":"ping","Method":"tools/call","PARAMS":{"name":"secret"}}`, `request 2 ping`},
		{"long s in params", "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"param\u017f\":{}}", `request 2 ping`},
		{"Kelvin sign", "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"\u212a\":{}}", `request 2 ping`},
		{"only Method", `{"jsonrpc":"2.0","id":2,"Method":"ping"}`, refused + " 2"},
		{"only ID", `{"jsonrpc":"2.0","ID":2,"method":"ping"}`, `notification ping`},
		{"JSONRPC", `{"JSONRPC":"2.0","id":2,"method":"ping"}`, refused + " 2"},

		// a member given twice
		{"method twice", `{"jsonrpc":"2.0","id":2,"method":"ping","method":"tools/call"}`, refused + " 2"},
		{"method twice, once escaped", `{"jsonrpc":"2.0","id":2,"method":"ping","\u006dethod":"tools/call"}`, refused + " 2"},
		{"params twice", `{"jsonrpc":"2.0","id":2,"method":"m","params":{},"params":{}}`, refused + " 2"},
		{"jsonrpc twice", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":2,"method":"m"}`, refused + " 2"},
		{"id twice", `{"jsonrpc":"2.0","id":2,"id":3,"method":"m"}`, refused + " "},
		{"result twice", `{"jsonrpc":"2.0","id":2,"result":{},"result":{}}`, refused + " response 2"},
		{"error twice", `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""},"error":{"code":1,"message":""}}`, refused + " response 2"},

		// one of method, result and error
		{"none", `{"jsonrpc":"2.0","id":1}`, refused + " 1"},
		{"params only", `{"jsonrpc":"2.0","params":{}}`, refused + " "},
		{"empty object", `{}`, refused + " "},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, refused + " 1"},
		{"method and error", `{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":""}}`, refused + " 1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, refused + " response 1"},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, refused + " response "},

		// the version of JSON-RPC
		{"no jsonrpc", `{"id":1,"method":"m"}`, refused + " 1"},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"m"}`, refused + " 1"},
		{"jsonrpc number", `{"jsonrpc":2.0,"id":1,"method":"m"}`, refused + " 1"},
		{"jsonrpc null", `{"jsonrpc":null,"id":1,"method":"m"}`, refused + " 1"},
		{"jsonrpc with more", `{"jsonrpc":"2.0 ","id":1,"result":{}}`, refused + " response 1"},

		{"method number", `{"jsonrpc":"2.0","id":1,"method":7}`, refused + " 1"},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, refused + " 1"},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, refused + " 1"},
		{"method and a bad id", `{"jsonrpc":"2.0","id":1.5,"method":7}`, refused + " "},

		{"error string", `{"jsonrpc":"2.0","id":1,"error":"x"}`, refused + " response 1"},
		{"error null", `{"jsonrpc":"2.0","id":1,"error":null}`, refused + " response 1"},
		{"error empty", `{"jsonrpc":"2.0","id":1,"error":{}}`, refused + " response 1"},
		{"error without code", `{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}`, refused + " response 1"},
		{"error without message", `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, refused + " response 1"},
		{"error message null", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}`, refused + " response 1"},
		{"error code fraction", `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`, refused + " response 1"},
		{"error code string", `{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}`, refused + " response 1"},
		{"error with bad id", `{"jsonrpc":"2.0","id":{},"error":{"code":1,"message":""}}`, refused + " response "},

		{"array", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, refused + " "},
		{"empty array", `[]`, refused + " "},
		{"null", `null`, refused + " "},
		{"number", `42`, refused + " "},
		{"string", `"x"`, refused + " "},

		{"half an object", `{oops`, parse + " "},
		{"nothing", ``, parse + " "},
		{"spaces", `   `, parse + " "},
		{"only a byte order mark", "\xEF\xBB\xBF", parse + " "},
		{"byte order mark inside", "{\"jsonrpc\":\"2.0\",\xEF\xBB\xBF\"method\":\"m\"}", parse + " "},
		{"byte order mark after a space", " \xEF\xBB\xBF{}", parse + " "},
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"m"`, parse + " "},
		{"two messages", `{"jsonrpc":"2.0","method":"m"}{"jsonrpc":"2.0","method":"m"}`, parse + " "},
		{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"m",}`, parse + " "},
		{"bad params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}`, parse + " "},
		{"bad unknown member", `{"jsonrpc":"2.0","id":1,"method":"m","x":[1,]}`, parse + " "},
		{"half an array", `[{"jsonrpc":"2.0"}`, parse + " "},
		{"NUL at the end", "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\x00", parse + " "},
		{"invalid UTF-8 in params", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":\"\xff\"}", parse + " "},
		{"invalid UTF-8 in a name", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"\xc3\":1}", parse + " "},
		{"surrogate as UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}", parse + " "},
		{"too deep", `{"params":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, parse + " "},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"m","x":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`, `request 1 m`},
	} {
		t.Run(c.name, func(t *testing.T) {
			frame := []byte(c.frame)
			m, isResponse, invalid := decodeMessage(frame)
			if got := describeEnvelope(m, isResponse, invalid); got != c.want {
				t.Errorf("%.200s\nread as %q\nwant    %q (%v)", c.frame, got, c.want, invalid)
			}
			m.Params, m.Result = append(m.Params, "xx"...), append(m.Result, "xx"...)
			if string(frame) != c.frame {
				t.Error("the frame was written to, or can be by appending to a member")
			}
		})
	}
}

func describeEnvelope(m Message, isResponse bool, invalid *Error) string {
	body := ""
	switch {
	case invalid != nil && isResponse:
		return fmt.Sprintf("%d response %s", invalid.Code, m.ID)
	case invalid != nil:
		return fmt.Sprintf("%d %s", invalid.Code, m.ID)
	case m.Params != nil:
		body = " " + string(m.Params)
	}
	switch {
	case m.IsRequest():
		return "request " + m.ID.String() + " " + m.Method + body
	case m.Method != "":
		return "notification " + m.Method + body
	case m.Error != nil:
		return strings.TrimSuffix(fmt.Sprintf("error %s %d %s %s", m.ID, m.Error.Code, m.Error.Message, m.Error.Data), " ")
	}
	return fmt.Sprintf("result %s %s", m.ID, m.Result)
}

func TestSplitBatch(t *testing.T) {
	for _, c := range []struct {
		frame string
		want  []string // nil: not a batch
	}{
		{`[]`, []string{}},
		{"\xEF\xBB\xBF [ {\"a\":[1, 2]} ,\n 1,null,\"],\"] \r\n", []string{`{"a":[1, 2]}`, `1`, `null`, `"],"`}},
		{`[[{}]]`, []string{`[{}]`}},
		{`{"jsonrpc":"2.0"}`, nil},
		{``, nil},
		{`[`, nil},
		{`[1,]`, nil},
		{`[1]]`, nil},
		{`[1] [2]`, nil},
		{`[{"a"}]`, nil},
		{"[\"\xff\"]", nil},
	} {
		members, ok := splitBatch([]byte(c.frame))
		got := []string{}
		if ok {
			for m := range members {
				got = append(got, string(m))
			}
		}
		if ok != (c.want != nil) || ok && strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%q split into %q, %v", c.frame, got, ok)
		}
	}
}

func TestAppendEnvelopes(t *testing.T) {
	shows(t, "base.jsonrpc.conform", "base.error.object", "base.error.code-integer", "base.error.id-unreadable")
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct{ name, got, want string }{
		{"request", string(appendRequest(nil, IntID(7), "tools/call", raw(`{"a":1}`))),
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":1}}`},
		{"request without params", string(appendRequest([]byte("x"), StringID("a"), "ping", nil)),
			`x{"jsonrpc":"2.0","id":"a","method":"ping"}`},
		{"notification", string(appendNotification(nil, "notifications/progress", raw(`{}`))),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`},
		{"a method with every kind of character", string(appendNotification(nil, "<&>\u2028\"\x01\xff", nil)),
			"{\"jsonrpc\":\"2.0\",\"method\":\"<&>\\u2028\\\"\\u0001\uFFFD\"}"},
		{"result", string(append(appendResultHead(nil, IntID(0)), `{}}`...)),
			`{"jsonrpc":"2.0","id":0,"result":{}}`},
		{"error", string(appendError(nil, StringID(""), Errorf(CodeInvalidParams, "no <b> in %s", "a"))),
			`{"jsonrpc":"2.0","id":"","error":{"code":-32602,"message":"no <b> in a"}}`},
		{"error without id", string(appendError(nil, ID{}, &Error{Code: CodeParseError, Message: "parse error"})),
			`{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error"}}`},
		{"error without code", string(appendError(nil, IntID(1), &Error{Message: "m"})),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}`},
		{"error with data", string(appendError(nil, IntID(1), Errorf(-32022, "m").withData(map[string]any{"b": "<", "a": []int{}}))),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"a":[],"b":"<"}}}`},
		{"error with data null", string(appendError(nil, IntID(1), &Error{1, "m", raw(`null`)})),
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":null}}`},
		{"error with data on several lines", string(appendError(nil, IntID(1), &Error{1, "m", raw("{\n\t\"a\": \"x y\",\r\n\"b\" : 1e400 }\n")})),
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"a":"x y","b":1e400}}}`},
		{"error with data that is not JSON", string(appendError(nil, IntID(1), &Error{1, "m", raw("{\n")})),
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`},
		{"error with data without a byte", string(appendError(nil, IntID(1), &Error{1, "m", raw("")})),
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
	}
}

func TestAppendRaw(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{` {"a" : [1, 2]} `, `{"a" : [1, 2]}`},
		{"{\r\n\t\"a\": \"\\n <>\"\n}", `{"a":"\n <>"}`},
		{"{\"a\":\r1}", `{"a":1}`},
		{"\xEF\xBB\xBF{\"a\":1}", `{"a":1}`},
		{"\xEF\xBB\xBF\n{\"a\":\n1}\n", `{"a":1}`},
		{"\"a\u2028b\u2029c\"", `"a\u2028b\u2029c"`},
		{"[\n\"\u2028\"\n]", `["\u2028"]`},
		{`9007199254740993`, `9007199254740993`},
		{`"\ud800"`, `"\ud800"`},
	} {
		got, err := appendRaw([]byte("x"), json.RawMessage(c.raw))
		if string(got) != "x"+c.want || err != nil {
			t.Errorf("%q is written %s, %v", c.raw, got, err)
		}
		got, err = encodeJSON([]byte("x"), json.RawMessage(c.raw))
		if string(got) != "x"+c.want || err != nil {
			t.Errorf("%q is encoded %s, %v", c.raw, got, err)
		}
	}
	if got, err := appendRaw(nil, nil); string(got) != "null" || err != nil {
		t.Errorf("nil is written %s, %v", got, err)
	}
	for _, bad := range []string{"", " ", "{", "{}\n{}", "\"\xff\"", "\"a\nb\"", "\xEF\xBB\xBF", "[\xEF\xBB\xBF]"} {
		if got, err := appendRaw([]byte("x"), json.RawMessage(bad)); err == nil || string(got) != "x" {
			t.Errorf("%q is written %s", bad, got)
		}
	}
}

// badMarshaler is a value whose JSON is not UTF-8, which encoding/json lets
// pass.
type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { return []byte("\"\xff\""), nil }

func TestEncodeJSON(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, `null`},
		{"<a href=\"x\">&\u2028", `"<a href=\"x\">&\u2028"`},
		{[]string{}, `[]`},
		{map[string]any{"b": 1, "a": json.RawMessage("[1,\n2]")}, `{"a":[1,2],"b":1}`},
		{json.Number("9007199254740993"), `9007199254740993`},
		{struct {
			S string `json:"s"`
			P *int   `json:"p"`
		}{"\xff", nil}, `{"s":"\ufffd","p":null}`},
	} {
		got, err := encodeJSON([]byte("x"), c.v)
		if string(got) != "x"+c.want || err != nil {
			t.Errorf("%#v is encoded %s, %v, want %s", c.v, got, err, c.want)
		}
	}
	for _, bad := range []any{make(chan int), badMarshaler{}, []any{json.RawMessage("\"\xc3\"")}, json.RawMessage("{\n"), json.Number("1x")} {
		if got, err := encodeJSON([]byte("x"), bad); err == nil || string(got) != "x" {
			t.Errorf("%#v is encoded %q, without an error", bad, got)
		}
	}
}

func TestErrors(t *testing.T) {
	e := Errorf(CodeInvalidParams, "no %s", "name")
	if e.Error() != "mcp: no name (code -32602)" {
		t.Error(e)
	}
	wrapped := fmt.Errorf("call: %w", e)
	if !errors.Is(wrapped, &Error{Code: CodeInvalidParams}) || errors.Is(wrapped, &Error{Code: CodeInternalError}) || errors.Is(wrapped, os.ErrNotExist) {
		t.Error("errors.Is compares codes")
	}
}

// jsonCases are texts of every kind with what RFC 8259 says of them; the
// published suite has more.
var jsonCases = struct{ good, bad []string }{
	good: []string{
		`0`, `-0`, `1`, `-1.5e+10`, `1E-2`, `0e1`, `123456789012345678901234567890`, `1e400`, `"a"`, `""`, `"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"`,
		`"\ud800"`, "\"\x7f\u0080\u2028\U0010FFFF\"", `null`, `true`, `false`, `[]`, `{}`, `[[],{}]`, ` [ 1 , 2 ] `, "\t\r\n{\"a\":{\"b\":[null]}}\n", `{"":1,"":2}`,
		"\xEF\xBB\xBF[]", strings.Repeat("[", 10000) + strings.Repeat("]", 10000), "[" + strings.Repeat("[],{},", 10000) + "0]",
	},
	bad: []string{
		``, ` `, `-`, `+1`, `01`, `-01`, `1.`, `.1`, `1.e1`, `1e`, `1e+`, `0x1`, `1_0`, `NaN`, `Infinity`, `nul`, `nulll`, `True`, `tru`, `fals`, `"`, `"a`, `'a'`, `"\x"`, `"\u12"`, `"\u12G4"`, `"\`,
		"\"\n\"", "\"\x00\"", "\"\x1f\"", "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", `[`, `]`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`,
		`{a:1}`, `{1:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":1]`, `1 2`, `{} {}`, "1\x00", "\v1", "\f1", "\u00a01", "\u20281", `/**/1`, `1//`, "\xEF\xBB\xBF", "\xEF\xBB\xBF\xEF\xBB\xBF1", "1\xEF\xBB\xBF", "\xFF\xFE1\x00", `#`,
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat("[", 100000), strings.Repeat(`{"a":`, 100000),
	},
}

func TestValidJSON(t *testing.T) {
	for _, text := range jsonCases.good {
		if err := validJSON([]byte(text)); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
		if text[0] != '\xEF' && !json.Valid([]byte(text)) {
			t.Errorf("%.60q: encoding/json refuses it", text)
		}
	}
	for _, text := range jsonCases.bad {
		if validJSON([]byte(text)) == nil {
			t.Errorf("%.60q was accepted", text)
		}
	}
}

// jsonUndecided says what we do with the texts of the suite on which RFC 8259
// leaves parsers free: numbers keep their digits, however large; an escaped
// surrogate without its partner passes, as it does in encoding/json; what is
// not UTF-8 does not.
var jsonUndecided = map[string]bool{
	"number_double_huge_neg_exp": true, "number_huge_exp": true, "number_neg_int_huge_exp": true, "number_pos_double_huge_exp": true,
	"number_real_neg_overflow": true, "number_real_pos_overflow": true, "number_real_underflow": true, "number_too_big_neg_int": true,
	"number_too_big_pos_int": true, "number_very_big_negative_int": true,

	"object_key_lone_2nd_surrogate": true, "string_1st_surrogate_but_2nd_missing": true, "string_1st_valid_surrogate_2nd_invalid": true,
	"string_incomplete_surrogate_and_escape_valid": true, "string_incomplete_surrogate_pair": true, "string_incomplete_surrogates_escape_valid": true,
	"string_invalid_lonely_surrogate": true, "string_invalid_surrogate": true, "string_inverted_surrogates_U+1D11E": true, "string_lone_second_surrogate": true,

	"string_UTF-16LE_with_BOM": false, "string_utf16BE_no_BOM": false, "string_utf16LE_no_BOM": false, "string_iso_latin_1": false,
	"string_UTF-8_invalid_sequence": false, "string_UTF8_surrogate_U+D800": false, "string_invalid_utf-8": false, "string_lone_utf8_continuation_byte": false,
	"string_not_in_unicode_range": false, "string_overlong_sequence_2_bytes": false, "string_overlong_sequence_6_bytes": false,
	"string_overlong_sequence_6_bytes_null": false, "string_truncated-utf-8": false,

	"structure_500_nested_arrays": true, "structure_UTF-8_BOM_empty_object": true,
}

// A string is read eight bytes at a time: each byte has to be seen wherever
// in the eight it stands, and whatever stands before it.
func TestEveryByteOfAString(t *testing.T) {
	shows(t, "transport.utf8")
	for c := range 256 {
		for _, fill := range []string{"a", "!", "#", "[", "\x7f", "\u00a0", "\u20ac"} {
			for before := range 19 {
				for after := range 10 {
					text := strings.Repeat(fill, before) + string([]byte{byte(c)}) + strings.Repeat(fill, after)
					doc := `{"` + text + `":"` + text + `"}`
					want := c >= 0x20 && c < 0x80 && c != '"' && c != '\\'
					s := scanner{data: []byte(doc)}
					s.open('{')
					s.more('}', 0)
					name := s.key()
					value := s.skip()
					s.more('}', 1)
					if s.end(); (s.err == nil) != want {
						t.Fatalf("%q: %v", doc, s.err)
					}
					if want && (string(name) != text || string(value) != `"`+text+`"`) {
						t.Fatalf("%q is read as %q and %q", doc, name, value)
					}
				}
			}
		}
	}
}

func TestJSONParsingSuite(t *testing.T) {
	files, _ := filepath.Glob("../shared/suites/json-parsing/*.json")
	if len(files) == 0 {
		t.Skip("the published suite is not beside this folder; TestValidJSON has cases of its own")
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "_")
		want := kind == "y"
		if kind == "i" {
			decided := false
			if want, decided = jsonUndecided[name]; !decided {
				t.Errorf("%s: not decided", name)
			}
			seen++
		}
		if err := validJSON(text); (err == nil) != want {
			t.Errorf("%s_%s: %v", kind, name, err)
		}
	}
	if seen != len(jsonUndecided) {
		t.Errorf("%d texts left open, %d decided", seen, len(jsonUndecided))
	}
	t.Logf("%d texts", len(files))
}

func TestStringValue(t *testing.T) {
	for raw, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9\uD83D\uDE00x"`: "é😀x", `"\ud800"`: "\uFFFD", `"\udc00\ud800"`: "\uFFFD\uFFFD",
		`"\ud800\ud83d\ude00"`: "\uFFFD😀", `"\ud800x\u0041"`: "\uFFFDxA", `"\u0000"`: "\x00", `"é\n"`: "é\n", `"\uFFFD"`: "\uFFFD",
	} {
		got, ok := stringValue([]byte(raw))
		var std string
		if err := json.Unmarshal([]byte(raw), &std); err != nil || std != want {
			t.Errorf("%s: encoding/json reads %q, %v", raw, std, err)
		}
		if got != want || !ok {
			t.Errorf("%s is read as %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{``, `1`, `null`, `{}`, `"`} {
		if _, ok := stringValue([]byte(raw)); ok {
			t.Errorf("%s was taken for a string", raw)
		}
	}
}

// What one message may cost: its method is copied, and its id if it has one.
func TestDecodeMessageAllocations(t *testing.T) {
	request := []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"weather","arguments":{"city":"Lisbon","days":3},"_meta":{"progressToken":"abc"}}}`)
	answer := []byte(`{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"sunny, and about twenty degrees in the shade"}],"isError":false}}`)
	notice := []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"abc","progress":0.5,"total":1,"message":"half of it is done"}}`)
	for frame, ceiling := range map[*[]byte]float64{&request: 2, &answer: 1, &notice: 1} {
		got := testing.AllocsPerRun(100, func() {
			if _, _, invalid := decodeMessage(*frame); invalid != nil {
				t.Fatal(invalid)
			}
		})
		if got > ceiling {
			t.Errorf("%d bytes: %v allocations, at most %v: %s", len(*frame), got, ceiling, *frame)
		}
	}
	buf := make([]byte, 0, 1024)
	if got := testing.AllocsPerRun(100, func() {
		buf = appendRequest(buf[:0], IntID(7), "tools/call", request)
		buf = appendError(buf[:0], ID{}, &Error{Code: 1, Message: "a <message> with \n escapes"})
	}); got > 0 {
		t.Errorf("appending to a buffer that is large enough: %v allocations", got)
	}
}

// sameJSON reports whether two texts differ in white space and in how U+2028
// and U+2029 are written at most.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	if a != nil && json.Compact(&x, a) != nil || b != nil && json.Compact(&y, b) != nil {
		return false
	}
	return escapeLineEnds.Replace(x.String()) == escapeLineEnds.Replace(y.String()) && (a == nil) == (b == nil)
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "<&>", "é😀", "\u2028\u2029", "\uFFFD", "\xff", "\xed\xa0\x80", "a\xc3", "\xe2\x80", "\u2027\u202a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := appendString(nil, s)
		if bytes.ContainsAny(raw, "\r\n\u2028\u2029") || validJSON(raw) != nil || !json.Valid(raw) {
			t.Fatalf("%q is written %q", s, raw)
		}
		got, ok := stringValue(raw)
		var std string
		if err := json.Unmarshal(raw, &std); err != nil || !ok || std != got || got != string([]rune(s)) {
			t.Fatalf("%q is written %q, read as %q and by encoding/json as %q", s, raw, got, std)
		}
	})
}
