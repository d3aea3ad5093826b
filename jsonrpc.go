package mcp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is the wire: JSON text read strictly and written by appending,
// and the JSON-RPC 2.0 envelope around every message of the protocol.

// Error codes of JSON-RPC 2.0 and of the protocol.
const (
	CodeParseError     = -32700 // the text is not JSON
	CodeInvalidRequest = -32600 // the JSON is not a request
	CodeMethodNotFound = -32601 // the receiver does not serve the method
	CodeInvalidParams  = -32602 // the parameters do not fit the method
	CodeInternalError  = -32603 // the receiver failed

	CodeHeaderMismatch             = -32020 // HTTP headers and body disagree; 2026-07-28
	CodeMissingClientCapability    = -32021 // data.requiredCapabilities says which; 2026-07-28
	CodeUnsupportedProtocolVersion = -32022 // data.supported and data.requested; 2026-07-28

	CodeResourceNotFound       = -32002 // understood from peers before 2026-07-28, never sent
	CodeURLElicitationRequired = -32042 // data.elicitations; 2025-11-25 only
	CodeRequestCancelled       = -32800 // ends the stream of a cancelled HTTP request, before 2026-07-28
	CodeUserRejected           = -1     // the user refused a sampling request, before 2026-07-28
)

// An ID identifies a request, or a progress token: a JSON string or integer.
// It keeps the exact bytes it arrived with, so 1 and "1" are two IDs and
// neither loses digits. IDs are comparable. The zero ID is "absent"; it is
// what a notification has.
type ID struct {
	raw string // a JSON string or integer, as on the wire; "" when absent
}

// IntID returns the ID that is the JSON integer n.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the ID that is the JSON string s.
func StringID(s string) ID { return ID{string(appendString(nil, s))} }

// IsZero reports whether the ID is absent.
func (id ID) IsZero() bool { return id.raw == "" }

// String returns the ID's JSON text: 1 for a number, "1" with its quotes for
// a string, and nothing for the zero ID.
func (id ID) String() string { return id.raw }

// MarshalJSON returns the ID's bytes, and null for the zero ID.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.raw == "" {
		return []byte("null"), nil
	}
	return []byte(id.raw), nil
}

// UnmarshalJSON accepts a JSON string or integer and nothing else.
func (id *ID) UnmarshalJSON(data []byte) error {
	parsed, err := parseID(data)
	if err == nil {
		*id = parsed
	}
	return err
}

// parseID makes an ID from one valid JSON value.
func parseID(raw []byte) (ID, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && (raw[0] == '"' || isInteger(raw)) {
		return ID{string(raw)}, nil
	}
	return ID{}, errors.New("id must be a string or an integer")
}

// isInteger reports whether the JSON value is a number without fraction or
// exponent.
func isInteger(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false
	}
	for _, c := range raw {
		if c == '.' || c|0x20 == 'e' {
			return false
		}
	}
	return true
}

// An Error is an error response: what a peer answered, or what a handler
// wants the peer to get. Any other error that a handler returns reaches the
// peer as [CodeInternalError] without its text.
//
// Two Errors are the same to [errors.Is] when their codes are equal.
type Error struct {
	Code    int             // never 0 on the wire
	Message string          // one short sentence
	Data    json.RawMessage // any JSON value; nil when absent
}

// Errorf returns an Error with the given code and formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message and the code.
func (e *Error) Error() string {
	if e == nil { // a nil *Error in an error is a mistake, but no reason to panic
		return "mcp: nil error"
	}
	return fmt.Sprintf("mcp: %s (code %d)", e.Message, e.Code)
}

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t != nil && e != nil && t.Code == e.Code
}

// withData returns e with data encoded as its Data.
func (e *Error) withData(data any) *Error {
	e.Data, _ = encodeJSON(nil, data)
	return e
}

// A Message is one decoded JSON-RPC envelope. A request has an ID and a
// Method, a notification a Method only, a response an ID and either Result or
// Error. Params and Result are as they came.
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage // nil when absent
	Result json.RawMessage // nil when absent
	Error  *Error

	ambiguous *Error // what refuses a request whose params have a member twice
}

// IsRequest reports whether m asks for an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// decodeMessage reads one envelope. What is wrong with it comes back as an
// *Error ready to be sent; the message then has the ID, if there was one that
// could be read, and says with isResponse whether an answer would be one to an answer.
// The message's members alias frame.
func decodeMessage(frame []byte) (m Message, isResponse bool, invalid *Error) {
	s := scanner{data: frame}
	if s.peek() != '{' {
		s.skip()
		if s.end(); s.err != nil {
			return m, false, Errorf(CodeParseError, "parse error: %v", s.err)
		}
		return m, false, Errorf(CodeInvalidRequest, "a message must be a JSON object")
	}
	var (
		version, id, method, errObj []byte
		seen                        [6]int
	)
	set := func(i int, dst *[]byte) {
		if seen[i]++; seen[i] > 1 && invalid == nil {
			invalid = Errorf(CodeInvalidRequest, "%s is given twice", envelopeMembers[i])
		}
		*dst = s.skip()
	}
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		switch string(s.key()) {
		case "jsonrpc":
			set(0, &version)
		case "id":
			set(1, &id)
		case "method":
			set(2, &method)
		case "params":
			var twice []byte
			if seen[3]++; seen[3] > 1 && invalid == nil {
				invalid = Errorf(CodeInvalidRequest, "%s is given twice", envelopeMembers[3])
			}
			if m.Params, twice = s.skipNoting(); twice != nil {
				m.ambiguous = Errorf(CodeInvalidParams, "params: %s is given twice", twice)
			}
		case "result":
			set(4, (*[]byte)(&m.Result))
		case "error":
			set(5, &errObj)
		default:
			s.skip()
		}
	}
	if s.end(); s.err != nil {
		return Message{}, false, Errorf(CodeParseError, "parse error: %v", s.err)
	}
	isResponse = method == nil && (m.Result != nil || errObj != nil)
	refuse := func(format string, args ...any) {
		if invalid == nil {
			invalid = Errorf(CodeInvalidRequest, format, args...)
		}
	}
	if seen[1] == 1 && !(errObj != nil && method == nil && string(id) == "null") {
		var err error
		if m.ID, err = parseID(id); err != nil {
			refuse("%v", err)
		}
	}
	if string(version) != `"2.0"` {
		refuse(`jsonrpc must be "2.0"`)
	}
	switch {
	case method != nil && (m.Result != nil || errObj != nil), m.Result != nil && errObj != nil:
		refuse("a message has one of method, result and error")
	case method != nil:
		var ok bool
		if m.Method, ok = knownString(method, commonStrings); !ok || m.Method == "" {
			refuse("method must be a string that is not empty")
		}
	case m.Result == nil && errObj == nil:
		refuse("a message must have a method, a result or an error")
	case m.Result != nil && m.ID.IsZero():
		refuse("a result must have an id")
	case errObj != nil:
		var err error
		if m.Error, err = decodeError(errObj); err != nil {
			refuse("%v", err)
		}
	}
	return m, isResponse, invalid
}

var envelopeMembers = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// decodeError reads the error member of a response.
func decodeError(raw []byte) (*Error, error) {
	s := scanner{data: raw}
	if s.peek() != '{' {
		return nil, errors.New("error must be an object")
	}
	e := new(Error)
	var hasCode, hasMessage bool
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		switch string(s.key()) {
		case "code":
			v := s.skip()
			code, err := strconv.Atoi(string(v))
			if err != nil {
				return nil, errors.New("error.code must be an integer")
			}
			e.Code, hasCode = code, true
		case "message":
			if e.Message, hasMessage = stringValue(s.skip()); !hasMessage {
				return nil, errors.New("error.message must be a string")
			}
		case "data":
			e.Data = s.skip()
		default:
			s.skip()
		}
	}
	if !hasCode || !hasMessage {
		return nil, errors.New("error must have a code and a message")
	}
	return e, nil
}

// splitBatch returns the members of a batch (2025-03-26 basic § Batching),
// which is an array. They come one by one, since a batch may have very many.
// A frame that is not JSON is left to decodeMessage to refuse.
func splitBatch(frame []byte) (members iter.Seq[[]byte], ok bool) {
	s := scanner{data: frame}
	if s.peek() != '[' {
		return nil, false
	}
	s.skip()
	if s.end(); s.err != nil {
		return nil, false
	}
	return func(yield func([]byte) bool) {
		s := scanner{data: frame}
		s.open('[')
		for n := 0; s.more(']', n) && yield(s.skip()); n++ {
		}
	}, true
}

// The append functions write one envelope each, without a line end. params,
// result and data must be valid JSON on one line, which is what encodeJSON
// produces.

func appendRequest(dst []byte, id ID, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id.raw...)
	dst = append(dst, `,"method":`...)
	return appendMethod(dst, method, params)
}

func appendNotification(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	return appendMethod(dst, method, params)
}

func appendMethod(dst []byte, method string, params []byte) []byte {
	dst = appendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// appendResultHead writes a result response up to the result, which the
// caller appends, and then the closing brace.
func appendResultHead(dst []byte, id ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id.raw...)
	return append(dst, `,"result":`...)
}

// appendError writes an error response. An absent id is left out
// (2025-11-25 basic § Error Responses).
func appendError(dst []byte, id ID, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if !id.IsZero() {
		dst = append(dst, `"id":`...)
		dst = append(dst, id.raw...)
		dst = append(dst, ',')
	}
	code := e.Code
	if code == 0 {
		code = CodeInternalError
	}
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, e.Message)
	if e.Data != nil {
		if data, err := appendRaw(append(dst, `,"data":`...), e.Data); err == nil {
			dst = data
		}
	}
	return append(dst, "}}"...)
}

// maxDepth is how deep JSON may nest, as in encoding/json.
const maxDepth = 10000

// A scanner walks over JSON text (RFC 8259) once, checking what it passes.
// The first error sticks: after it every method returns zero values and
// loops end, so callers look at err when they are done.
//
// The text must be UTF-8; a BOM before the first value is skipped.
type scanner struct {
	data  []byte
	pos   int
	depth int
	err   error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%s at offset %d", fmt.Sprintf(format, args...), s.pos)
		s.pos = len(s.data)
	}
}

// peek skips white space and returns the byte the next value or token starts
// with, and 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c > ' ' && c != 0xEF {
			return c
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		case 0xEF:
			if s.pos != 0 || !bytes.HasPrefix(s.data, []byte("\xEF\xBB\xBF")) {
				return c
			}
			s.pos = 3
		default:
			return c
		}
	}
	return 0
}

// take consumes white space and the given byte, if that comes next.
func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c || s.peek() == c {
		s.pos++
		return true
	}
	return false
}

// open consumes the given opening bracket.
func (s *scanner) open(bracket byte) {
	if !s.take(bracket) {
		s.fail("%q expected", bracket)
		return
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("nesting deeper than %d", maxDepth)
	}
}

// more reports whether the object or array has an n-th member or element
// (counted from 0), and otherwise consumes the closing bracket.
func (s *scanner) more(closing byte, n int) bool {
	if n > 0 && s.err == nil && s.pos < len(s.data) && s.data[s.pos] == ',' { // as mostly
		s.pos++
		return true
	}
	switch c := s.peek(); {
	case s.err != nil:
		return false
	case c == closing:
		s.pos++
		s.depth--
		return false
	case n == 0:
		return true
	case c == ',':
		s.pos++
		return true
	}
	s.fail("',' or %q expected", closing)
	return false
}

// key consumes a member's name and the colon. The bytes are valid until the
// scanner's next use only where the name holds escapes.
func (s *scanner) key() []byte {
	raw, escaped := s.str()
	if !s.take(':') {
		s.fail("':' expected")
		return nil
	}
	if escaped {
		return unescape(raw)
	}
	return raw
}

// str consumes a string and returns what is between its quotes, escapes as
// they are, and whether there are any.
func (s *scanner) str() (raw []byte, escaped bool) {
	if !s.take('"') {
		s.fail("string expected")
		return nil, false
	}
	start, wide := s.pos, false
	for i := start; ; {
		n, more := textLen(s.data[i:])
		i += n
		wide = wide || more
		if i < len(s.data) && s.data[i] == '"' && (!wide || utf8.Valid(s.data[start:i])) {
			s.pos = i + 1
			return s.data[start:i], escaped
		}
		if n = escapeLen(s.data[i:]); n == 0 {
			s.failString(start, i)
			return nil, false
		}
		escaped = true
		i += n
	}
}

// failString says what is wrong with a string that starts at an offset and
// cannot go on at another one.
func (s *scanner) failString(start, end int) {
	for s.pos = start; s.pos < end; {
		r, n := utf8.DecodeRune(s.data[s.pos:end])
		if r == utf8.RuneError && n == 1 {
			s.fail("invalid UTF-8")
			return
		}
		s.pos += n
	}
	switch {
	case end == len(s.data):
		s.pos = start - 1
		s.fail("string without end")
	case s.data[end] == '\\':
		s.fail("invalid escape")
	default:
		s.fail("control character in a string")
	}
}

// textLen returns how many bytes b starts with that are neither a quote, a
// backslash nor a control character, and whether there may be some among them
// that are not ASCII. It looks at eight at a time: the subtractions set the high
// bit of what is less than a space, equal to a quote and equal to a backslash,
// and perhaps of bytes after such a one, never before.
func textLen(b []byte) (n int, wide bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	var all uint64
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		all |= w
		odd := ((w - ones*0x20) | (w ^ ones*'"' - ones) | (w ^ ones*'\\' - ones)) &^ w & highs
		if odd != 0 {
			return n + bits.TrailingZeros64(odd)/8, all&highs != 0
		}
	}
	for ; n < len(b); n++ {
		c := b[n]
		if c < 0x20 || c == '"' || c == '\\' {
			break
		}
		all |= uint64(c)
	}
	return n, all&highs != 0
}

// escapeLen returns the length of the escape that b starts with, 0 if it is
// none.
func escapeLen(b []byte) int {
	if len(b) < 2 || b[0] != '\\' {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// number consumes a number and returns its text.
func (s *scanner) number() []byte {
	start, i := s.pos, s.pos
	if i < len(s.data) && s.data[i] == '-' {
		i++
	}
	from := i
	if i < len(s.data) && s.data[i] == '0' {
		i++
	} else {
		i = s.digits(i)
	}
	ok := i > from
	if ok && i < len(s.data) && s.data[i] == '.' {
		from = i + 1
		i = s.digits(from)
		ok = i > from
	}
	if ok && i < len(s.data) && s.data[i]|0x20 == 'e' {
		if i++; i < len(s.data) && (s.data[i] == '+' || s.data[i] == '-') {
			i++
		}
		from = i
		i = s.digits(from)
		ok = i > from
	}
	if !ok {
		s.fail("invalid number")
		return nil
	}
	s.pos = i
	return s.data[start:i]
}

// digits returns where the digits at an offset end.
func (s *scanner) digits(i int) int {
	for ; i < len(s.data); i++ {
		if c := s.data[i]; c < '0' || c > '9' {
			break
		}
	}
	return i
}

func (s *scanner) literal(word string) {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		s.fail("invalid value")
		return
	}
	s.pos += len(word)
}

// skip consumes one value of any kind and returns its text, without the
// white space around it; nil after an error.
func (s *scanner) skip() []byte {
	c := s.peek()
	start := s.pos
	switch c {
	case '{':
		s.open('{')
		for n := 0; s.more('}', n); n++ {
			s.key()
			s.skip()
		}
	case '[':
		s.open('[')
		for n := 0; s.more(']', n); n++ {
			s.skip()
		}
	case '"':
		s.str()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.number()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		if s.pos >= len(s.data) {
			s.fail("unexpected end")
		}
		s.fail("invalid value")
	}
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos:s.pos]
}

// skipNoting is skip that also returns the name of a member that some object
// within the value has twice, nil if there is none: who reads the value after
// us may take the other one.
func (s *scanner) skipNoting() (value, twice []byte) {
	s.peek()
	start := s.pos
	s.note(make([][]byte, 0, 16), &twice)
	if s.err != nil {
		return nil, nil
	}
	return s.data[start:s.pos:s.pos], twice
}

// repeatedMember is what skipNoting returns of a JSON text.
func repeatedMember(text []byte) []byte {
	s := scanner{data: text}
	_, twice := s.skipNoting()
	return twice
}

// note does the work of skipNoting. seen is scratch space.
func (s *scanner) note(seen [][]byte, twice *[]byte) {
	switch from := len(seen); s.peek() {
	case '[':
		s.open('[')
		for n := 0; s.more(']', n); n++ {
			s.note(seen, twice)
		}
	case '{':
		var many map[string]bool // instead of seen, once there are many
		s.open('{')
		for n := 0; s.more('}', n); n++ {
			name := s.key()
			if n < 16 {
				for _, k := range seen[from:] {
					if *twice == nil && bytes.Equal(k, name) {
						*twice = name
					}
				}
				seen = append(seen, name)
			} else {
				if many == nil {
					many = make(map[string]bool)
					for _, k := range seen[from:] {
						many[string(k)] = true
					}
				}
				if *twice == nil && many[string(name)] {
					*twice = name
				}
				many[string(name)] = true
			}
			s.note(seen, twice)
		}
	default:
		s.skip()
	}
}

// end checks that nothing but white space follows.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.pos < len(s.data) {
		s.fail("text after the value")
	}
}

// validJSON returns why data is not one JSON value, and nil if it is.
func validJSON(data []byte) error {
	s := scanner{data: data}
	s.skip()
	s.end()
	return s.err
}

// stringValue returns the Go string of a JSON string that a scanner passed.
// ok is false for any other value.
func stringValue(raw []byte) (v string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	return unescapeString(raw), true
}

// commonStrings are those that messages need no string of their own for: methods
// and the names of revisions. What defines them fills it.
var commonStrings = make(map[string]string)

// knownString is stringValue for one that is likely to be known.
func knownString(raw []byte, known map[string]string) (v string, ok bool) {
	if len(raw) >= 2 && raw[0] == '"' {
		if v, ok = known[string(raw[1:len(raw)-1])]; ok {
			return v, true
		}
	}
	return stringValue(raw)
}

// unescape resolves the escapes of a checked string. A surrogate without its
// partner becomes U+FFFD, as in encoding/json.
func unescape(raw []byte) []byte {
	var out bytes.Buffer
	unescapeTo(&out, raw)
	return out.Bytes()
}

// unescapeString is unescape for who wants a string, without a second copy.
func unescapeString(raw []byte) string {
	var out strings.Builder
	unescapeTo(&out, raw)
	return out.String()
}

func unescapeTo(out interface {
	io.Writer
	io.ByteWriter
	WriteRune(r rune) (int, error)
	Grow(n int)
}, raw []byte) {
	out.Grow(len(raw)) // no escape is shorter than what it stands for
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			out.Write(raw)
			return
		}
		out.Write(raw[:i])
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			r := hex4(raw)
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				r2 := rune(-1)
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					r2 = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			out.WriteRune(r)
		default:
			out.WriteByte(c)
		}
	}
}

const hexDigits = "0123456789abcdef"

// appendString writes s as a JSON string. HTML characters stay as they are;
// U+2028 and U+2029, which some peers take for line ends, are escaped; bytes
// that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		n := 1
		if c >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError && r != '\u2028' && r != '\u2029' || r == utf8.RuneError && n > 1 {
				i += n
				continue
			}
			dst = append(dst, s[from:i]...)
			switch r {
			case utf8.RuneError:
				dst = append(dst, "\uFFFD"...)
			default:
				dst = append(dst, `\u202`...)
				dst = append(dst, hexDigits[r&0xF])
			}
		} else {
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, c)
		}
		i += n
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}

// appendRaw appends JSON that did not come through a scanner of ours: it is
// checked, put on one line if it is not, and freed of what some peers take
// for a line end or cannot read (U+2028, U+2029, a BOM). nil is written as
// null.
func appendRaw(dst []byte, raw json.RawMessage) ([]byte, error) {
	if raw == nil {
		return append(dst, "null"...), nil
	}
	if err := validJSON(raw); err != nil {
		return dst, err
	}
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\xEF\xBB\xBF")))
	if bytes.Contains(raw, []byte("\u2028")) || bytes.Contains(raw, []byte("\u2029")) {
		raw = []byte(escapeLineEnds.Replace(string(raw))) // they can only stand in strings
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...), nil
	}
	buf := bytes.NewBuffer(dst)
	err := json.Compact(buf, raw)
	return buf.Bytes(), err
}

var escapeLineEnds = strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`)

// encodeJSON appends a Go value as encoding/json writes it, but on one line
// and without escaping HTML characters.
func encodeJSON(dst []byte, v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return appendRaw(dst, raw)
	}
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	out := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !utf8.Valid(out[len(dst):]) { // encoding/json does not check what a MarshalJSON returns
		return dst, errors.New("a value encodes itself with bytes that are not UTF-8")
	}
	return out, nil
}
