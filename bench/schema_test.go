// Package bench compares mcpkit/mcp with others. It is a module of its own, so
// that what it compares with is nobody's dependency.
package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	google "github.com/google/jsonschema-go/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"mcpkit/mcp"
)

// A checker says why JSON does not fit a schema; nil if it does.
type checker func(doc []byte) error

// The validators. The others start from decoded values: check decodes for
// them, as a server must, and decoded leaves that out.
type validator struct {
	name    string
	compile func(schema []byte) (check checker, decoded func(v any) error, err error)
}

var validators = []validator{
	{"mcpkit", func(schema []byte) (checker, func(any) error, error) {
		s, err := mcp.CompileSchema(schema, nil)
		if err != nil {
			return nil, nil, err
		}
		return s.Validate, nil, nil
	}},
	{"santhosh-tekuri", func(schema []byte) (checker, func(any) error, error) {
		v, err := santhosh.UnmarshalJSON(bytes.NewReader(schema))
		if err != nil {
			return nil, nil, err
		}
		c := santhosh.NewCompiler()
		c.DefaultDraft(santhosh.Draft2020)
		if err := c.AddResource("mem:schema", v); err != nil {
			return nil, nil, err
		}
		s, err := c.Compile("mem:schema")
		if err != nil {
			return nil, nil, err
		}
		return func(doc []byte) error {
			v, err := santhosh.UnmarshalJSON(bytes.NewReader(doc))
			if err != nil {
				return err
			}
			return s.Validate(v)
		}, s.Validate, nil
	}},
	{"google", func(schema []byte) (checker, func(any) error, error) {
		var s google.Schema
		if err := json.Unmarshal(schema, &s); err != nil {
			return nil, nil, err
		}
		r, err := s.Resolve(nil)
		if err != nil {
			return nil, nil, err
		}
		return func(doc []byte) error {
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				return err
			}
			return r.Validate(v)
		}, r.Validate, nil
	}},
}

// A sample is a schema and a value that fits it. Most are those of tools: what
// clients are told by the reference servers (npm's server-everything,
// server-filesystem and server-memory), by the examples of the Go SDK and by our
// demo, without titles, descriptions and texts. Keywords that tools seldom use
// are in schemas of our own.
type sample struct {
	Name         string
	Schema, Good json.RawMessage
}

func samples(t testing.TB) (all []sample) {
	text, err := os.ReadFile("testdata/schemas.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// odd values take the place of others, beside what the schema mentions.
var odd = []any{nil, true, 0, -1, 1.5, 11, 1e300, json.Number("1.0"), json.Number("9007199254740993"), "", "a", "size", strings.Repeat("é", 41), []any{}, []any{"x", 1}, map[string]any{}, map[string]any{"v": 1}}

// A mutator changes values. It knows what a schema mentions: names, constants,
// and numbers with their neighbours.
type mutator struct {
	*rand.Rand
	names  []string
	values []any
}

func newMutator(r *rand.Rand, schema []byte) *mutator {
	m := &mutator{Rand: r, names: []string{"more", "x-y", "7", "x"}, values: slices.Clone(odd)}
	var v any
	json.Unmarshal(schema, &v)
	m.learn(v)
	return m
}

func (m *mutator) learn(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			m.names = append(m.names, name)
			m.learn(v[name])
		}
	case []any:
		for _, item := range v {
			m.learn(item)
		}
	case float64:
		m.values = append(m.values, v-1, v, v+0.5, v+1)
		if v < 100 {
			m.values = append(m.values, strings.Repeat("x", int(max(v, 0))), strings.Repeat("x", int(max(v, 0))+1))
		}
	default:
		m.values = append(m.values, v)
	}
}

func (m *mutator) value() any   { return m.values[m.Intn(len(m.values))] }
func (m *mutator) name() string { return m.names[m.Intn(len(m.names))] }

// change returns a value with one part of it replaced, left out or added.
func (m *mutator) change(v any) any {
	if m.Intn(3) == 0 {
		return m.value()
	}
	switch v := v.(type) {
	case map[string]any:
		object := maps.Clone(v)
		names := slices.Sorted(maps.Keys(v))
		switch n := m.Intn(4); {
		case n == 0 || len(names) == 0:
			object[m.name()] = m.value()
		case n == 1:
			delete(object, names[m.Intn(len(names))])
		default:
			name := names[m.Intn(len(names))]
			object[name] = m.change(v[name])
		}
		return object
	case []any:
		list := slices.Clone(v)
		if len(list) == 0 || m.Intn(3) == 0 {
			return append(list, m.value())
		}
		i := m.Intn(len(list))
		list[i] = m.change(list[i])
		return list
	}
	return m.value()
}

// onlyFormats reports whether formats are all that santhosh-tekuri holds
// against a value: the difference that has its place in TestDifferences.
func onlyFormats(err error) bool {
	e, ok := err.(*santhosh.ValidationError)
	if !ok {
		return false
	}
	if _, isFormat := e.ErrorKind.(*kind.Format); len(e.Causes) == 0 {
		return isFormat
	}
	return !slices.ContainsFunc(e.Causes, func(e *santhosh.ValidationError) bool { return !onlyFormats(e) })
}

func TestValidatorsAgree(t *testing.T) {
	const tries = 500
	r := rand.New(rand.NewSource(5))
	mixed, total := 0, 0
	for _, s := range samples(t) {
		var checks []checker
		for _, v := range validators {
			check, _, err := v.compile(s.Schema)
			if err != nil {
				t.Fatalf("%s: %s: %v", s.Name, v.name, err)
			}
			if err := check(s.Good); err != nil {
				t.Errorf("%s: %s refuses %s: %v", s.Name, v.name, s.Good, err)
			}
			checks = append(checks, check)
		}
		m := newMutator(r, s.Schema)
		fit := 0
		for range tries {
			var v any
			json.Unmarshal(s.Good, &v)
			for range 1 + r.Intn(2) {
				v = m.change(v)
			}
			doc, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			ours := checks[0](doc)
			if ours == nil {
				fit++
			}
			for i, check := range checks[1:] {
				name := validators[i+1].name
				if theirs := check(doc); (theirs == nil) != (ours == nil) && !(ours == nil && onlyFormats(theirs)) {
					t.Errorf("%s: %s\n mcpkit: %v\n %s: %v", s.Name, doc, ours, name, theirs)
				}
			}
		}
		if total += fit; fit > 0 && fit < tries {
			mixed++
		}
	}
	if all := len(samples(t)); mixed < all || total < tries*all/10 {
		t.Errorf("%d values fit; with %d of %d schemas there were some that did and some that did not", total, mixed, all)
	}
}

// TestDifferences lists where the three are known to differ, and which of them
// is right. The verdicts are those of mcpkit, santhosh-tekuri and google: y for
// a value that fits, n for one that does not, s for a schema that is refused.
func TestDifferences(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#"`
	for _, c := range []struct{ why, schema, doc, verdicts string }{
		// Text: theirs is what encoding/json passes on.
		{"RFC 8259 leaves a member that is given twice to the receiver. We refuse it, so that nobody reads another value than the one that was checked", `{"type":"object"}`, `{"a":1,"a":2}`, "nyy"},
		{"the same in a schema", `{"type":"string","type":"number"}`, `1`, "syy"},
		{"RFC 8259 section 8.1 allows a receiver to ignore a BOM", `{}`, "\ufeff1", "ynn"},

		// Numbers: google's are float64, and mcpkit and santhosh-tekuri are right.
		{"the integer is larger by one", `{"maximum":9007199254740992}`, `9007199254740993`, "nny"},
		{"the same", `{"const":9007199254740992}`, `9007199254740993`, "nny"},
		{"the same", `{"enum":[9007199254740992]}`, `9007199254740993`, "nny"},
		{"the items differ by one", `{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`, "yyn"},
		{"19.99 is 1999 times 0.01", `{"multipleOf":0.01}`, `19.99`, "yyn"},
		{"there is a fraction", `{"type":"integer"}`, `9007199254740993.5`, "nny"},
		{"the number is smaller, in the 20th digit", `{"minimum":0.1}`, `0.09999999999999999999`, "nny"},
		{"JSON sets no limit to numbers", `{"type":"number"}`, `1e400`, "yyn"},

		// Patterns are those of ECMA-262. The others take them for Go's, and mcpkit is right.
		{"control characters", `{"pattern":"^\\cC$"}`, `"\u0003"`, "yss"},
		{"escapes by number", `{"pattern":"\\u0061"}`, `"a"`, "yss"},
		{"[^] is any character", `{"pattern":"[^]"}`, `"a"`, "yss"},
		{"white space is not ASCII only", `{"pattern":"^\\s$"}`, `"\u00a0"`, "ynn"},
		{"a dot does not stand for a line end", `{"pattern":"^.$"}`, `"\u2028"`, "nyy"},
		{"an escape that has no meaning with Unicode", `{"pattern":"\\z"}`, `"z"`, "syy"},

		// Formats: draft-07 validation section 7 leaves it to the implementation whether
		// they are asserted, and 2020-12 has them as annotations. mcpkit asserts them
		// when asked to, santhosh-tekuri always does in draft-07, google never.
		{"a format of draft-07", `{` + draft7 + `,"format":"uri"}`, `"a b"`, "yny"},

		// Schemas that are not valid, and dialects.
		{"2020-12 has no array of items: prefixItems has taken its place", `{"items":[{"type":"string"}]}`, `[1]`, "ssy"},
		{"a length is not negative", `{"minLength":-1}`, `"a"`, "ssy"},
		{"a type there is not", `{"type":"text"}`, `1`, "ssn"},
		{"names are required once", `{"required":["a","a"]}`, `{"a":1}`, "ssy"},
		{"the meta-schema of 2020-12 keeps dependencies for older schemas", `{"dependencies":{"a":["b"]}}`, `{"a":1}`, "nny"},
		{"keywords are as they are written; others are ignored", `{"Type":"string"}`, `1`, "yyn"},
		{"an identifier without its empty fragment is the same", `{"$schema":"http://json-schema.org/draft-07/schema"}`, `1`, "yyn"},
		{"2019-09: mcpkit says at once that it does not know it, google with the first value", `{"$schema":"https://json-schema.org/draft/2019-09/schema"}`, `1`, "syn"},
	} {
		got := ""
		for _, v := range validators {
			check, _, err := v.compile([]byte(c.schema))
			switch {
			case err != nil:
				got += "s"
			case check([]byte(c.doc)) == nil:
				got += "y"
			default:
				got += "n"
			}
		}
		if got != c.verdicts {
			t.Errorf("%s: %s %s: %s, listed as %s", c.why, c.schema, c.doc, got, c.verdicts)
		}
	}
}

// order is the arguments of a typical tool: 8 fields, nested, an enum, an array.
const (
	orderSchema = `{"type":"object","properties":{"id":{"type":"string","minLength":1},"customer":{"type":"string"},"priority":{"type":"string","enum":["low","normal","high"]},"quantity":{"type":"integer","minimum":1},"price":{"type":"number"},"express":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}},"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},"zip":{"type":"string"},"country":{"type":"string"}},"required":["street","city","zip"],"additionalProperties":false}},"required":["id","customer","priority","quantity","price","address"],"additionalProperties":false}`
	order       = `{"id":"ord-000123","customer":"Ada Lovelace","priority":"high","quantity":3,"price":19.95,"express":true,"tags":["gift","fragile","eu"],"address":{"street":"12 Analytical Row","city":"London","zip":"N1 7AA","country":"GB"}}`
)

// list is a document of about size bytes that fits listSchema.
const listSchema = `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","n"]}}`

func list(size int) []byte {
	var b bytes.Buffer
	b.WriteString("[")
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name":"item number %d","n":%d,"tags":["red","green \u00e9"]}`, i, i*37)
	}
	b.WriteString("]")
	return b.Bytes()
}

func benchmarkChecks(b *testing.B, schema string, doc []byte, decoded bool) {
	for _, v := range validators {
		check, fromDecoded, err := v.compile([]byte(schema))
		if err != nil {
			b.Fatal(err)
		}
		b.Run("impl="+v.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if err := check(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
		if decoded && fromDecoded != nil {
			value, _ := santhosh.UnmarshalJSON(bytes.NewReader(doc))
			if v.name == "google" {
				json.Unmarshal(doc, &value)
			}
			b.Run("impl="+v.name+"-decoded", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := fromDecoded(value); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkValidate(b *testing.B) { benchmarkChecks(b, orderSchema, []byte(order), true) }

func BenchmarkCompile(b *testing.B) {
	for _, v := range validators {
		b.Run("impl="+v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := v.compile([]byte(orderSchema)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkValid(b *testing.B, doc []byte) {
	b.Run("impl=json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if !json.Valid(doc) {
				b.Fatal("not valid")
			}
		}
	})
}

// BenchmarkLarge doubles the document: what a byte costs must stay the same.
func BenchmarkLarge(b *testing.B) {
	for size := 1 << 10; size <= 4<<20; size *= 2 {
		doc := list(size)
		b.Run(fmt.Sprintf("size=%dKiB", size>>10), func(b *testing.B) {
			benchmarkValid(b, doc)
			benchmarkChecks(b, listSchema, doc, false)
		})
	}
}

// BenchmarkFlat checks documents of 1 MiB of every shape against schemas that
// do not nest.
func BenchmarkFlat(b *testing.B) {
	const size = 1 << 20
	fill := func(open, close string, part func(i int) string) []byte {
		doc := []byte(open)
		for i := 0; len(doc) < size; i++ {
			if i > 0 && open != `{"text":"` {
				doc = append(doc, ',')
			}
			doc = append(doc, part(i)...)
		}
		return append(doc, close...)
	}
	const text = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	for _, c := range []struct {
		name, schema string
		doc          []byte
	}{
		{"text", text, fill(`{"text":"`, `"}`, func(int) string { return "the quick brown fox jumps over it " })},
		{"lines", text, fill(`{"text":"`, `"}`, func(int) string { return `\tif err != nil {\n\t\treturn \"no\"\n\t}\n` })},
		{"unicode", text, fill(`{"text":"`, `"}`, func(int) string { return "日本語の文章 и по-русски, voilà " })},
		{"words", `{"type":"array","items":{"type":"string"}}`, fill("[", "]", func(i int) string { return fmt.Sprintf(`"word %d"`, i) })},
		{"numbers", `{"type":"array","items":{"type":"number"}}`, fill("[", "]", func(i int) string { return fmt.Sprintf("%d.25", i*37) })},
		{"members", `{"type":"object","additionalProperties":{"type":"integer"}}`, fill("{", "}", func(i int) string { return fmt.Sprintf(`"member%d":%d`, i, i) })},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkValid(b, c.doc)
			benchmarkChecks(b, c.schema, c.doc, false)
		})
	}
}
