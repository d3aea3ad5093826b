package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A chooser picks numbers: a random one, or what a fuzzer says.
type chooser interface{ Intn(n int) int }

type bytesChooser struct{ data []byte }

func (b *bytesChooser) Intn(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	c := int(b.data[0])
	b.data = b.data[1:]
	return c % n
}

// leafTypes are what generated types are made of. Those in textTypes are
// strings whose form the schema does not assert.
var leafTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[plainText](), reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[time.Duration](), reflect.TypeFor[*big.Int](), reflect.TypeFor[node](), reflect.TypeFor[*left](), reflect.TypeFor[tree](), reflect.TypeFor[page[int8]](), reflect.TypeFor[inner](),
}

var textTypes = []reflect.Type{
	reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[*url.URL](), reflect.TypeFor[[]byte](), reflect.TypeFor[json.Number](), reflect.TypeFor[map[textKey]int](), reflect.TypeFor[ownJSON](), reflect.TypeFor[knowsItems](),
}

// generatedType makes a type out of leaves.
func generatedType(c chooser, leaves []reflect.Type, depth int) reflect.Type {
	kind := c.Intn(9)
	if depth == 0 {
		kind += 3
	}
	inside := func() reflect.Type { return generatedType(c, leaves, depth-1) }
	switch kind {
	case 0:
		return reflect.SliceOf(inside())
	case 1:
		return reflect.ArrayOf(c.Intn(3), inside())
	case 2:
		return reflect.PointerTo(inside())
	}
	if depth == 0 {
		return leaves[c.Intn(len(leaves))]
	}
	switch kind {
	case 3:
		return reflect.MapOf([]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[uint8]()}[c.Intn(3)], inside())
	case 4, 5:
		return leaves[c.Intn(len(leaves))]
	}
	return generatedStruct(c, leaves, depth)
}

func generatedStruct(c chooser, leaves []reflect.Type, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range 1 + c.Intn(4) {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: generatedType(c, leaves, depth-1)}
		name := []string{fmt.Sprintf("f%d", i), "", fmt.Sprintf("f.%d", i)}[c.Intn(3)]
		switch option := []string{"", "", ",omitempty", ",omitzero", ",string", "-"}[c.Intn(6)]; {
		case option == "-":
			f.Tag = `json:"-"`
		case option == ",string" && !slices.Contains([]reflect.Kind{reflect.Bool, reflect.Int, reflect.Uint8, reflect.Float64}, f.Type.Kind()):
			f.Tag = reflect.StructTag(`json:"` + name + `"`)
		default:
			f.Tag = reflect.StructTag(`json:"` + name + option + `"`)
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

// marshalled returns the JSON of a random value, if encoding/json can make it.
func marshalled(t *testing.T, typ reflect.Type, r *rand.Rand) ([]byte, bool) {
	v := reflect.New(typ)
	randomValue(r, v.Elem(), 0)
	text, err := json.Marshal(v.Interface())
	if err != nil {
		t.Logf("%v: %v", typ, err)
	}
	return text, err == nil
}

func TestWhatIsMarshalledFitsGeneratedTypes(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	leaves, texts := append(slices.Clone(leafTypes), textTypes...), 0
	for range 1500 {
		typ := generatedType(r, leaves, 3)
		s, err := compileInferred(typ)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		for range 4 {
			text, ok := marshalled(t, typ, r)
			if !ok {
				continue
			}
			if texts++; s.Validate(text) != nil {
				sent, _ := schemaForType(typ)
				t.Fatalf("%v: %v\n%s\n%s", typ, s.Validate(text), text, sent)
			}
		}
	}
	if texts < 5000 {
		t.Errorf("only %d values", texts)
	}
}

// TestWhatFitsTheSchemaDecodes changes marshalled values here and there. What
// still fits the schema decodes, and to what encoding/json makes of it.
func TestWhatFitsTheSchemaDecodes(t *testing.T) {
	r := rand.New(rand.NewSource(18))
	fit := 0
	leaves := slices.DeleteFunc(slices.Clone(leafTypes), func(t reflect.Type) bool { return t.Kind() == reflect.Uint8 }) // []byte is base64
	for range 4500 {
		typ := generatedStruct(r, leaves, 3)
		s, err := compileInferred(typ)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		text, ok := marshalled(t, typ, r)
		for range 8 {
			changed := text
			for range 1 + r.Intn(2) {
				changed = mutated(t, changed, r)
			}
			if !ok || s.Validate(changed) != nil {
				continue
			}
			fit++
			got, want := reflect.New(typ), reflect.New(typ)
			if err := decodeArguments(changed, got.Interface()); err != nil {
				sent, _ := schemaForType(typ)
				t.Fatalf("%v\n%s fits\n%s\nand does not decode: %v", typ, changed, sent, err)
			}
			err := json.Unmarshal(changed, want.Interface())
			if aboutIntegers(err) {
				continue
			}
			if err != nil || !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Fatalf("%v\n%s decodes to\n%+v and for encoding/json to\n%+v, %v", typ, changed, got.Elem(), want.Elem(), err)
			}
		}
	}
	if fit < 3000 {
		t.Errorf("only %d documents fit", fit)
	}
}

// oddValues take the place of others.
var oddValues = []string{`null`, `true`, `0`, `-1`, `300`, `1.0`, `2.5e1`, `1.5`, `-70000`, `""`, `"x"`, `"1"`, `"true"`, `[]`, `[1]`, `{}`, `{"f0":1}`, strconv.Itoa(math.MaxInt)}

// mutated changes one value in a document, which stays JSON.
func mutated(t *testing.T, text []byte, r *rand.Rand) []byte {
	type place struct{ from, to int }
	var places []place
	s := scanner{data: text}
	var walk func()
	walk = func() {
		c := s.peek()
		from := s.pos
		switch c {
		case '{':
			s.open('{')
			for n := 0; s.more('}', n); n++ {
				s.key()
				walk()
			}
		case '[':
			s.open('[')
			for n := 0; s.more(']', n); n++ {
				walk()
			}
		default:
			s.skip()
		}
		places = append(places, place{from, s.pos})
	}
	if walk(); s.err != nil {
		t.Fatal(s.err)
	}
	p := places[r.Intn(len(places))]
	odd := oddValues[r.Intn(len(oddValues))]
	if text[p.from] == '{' && p.to-p.from > 2 && r.Intn(2) == 0 {
		odd = string(text[p.from:p.to-1]) + `,"more":1}` // a member that is not known
	}
	return slices.Concat(text[:p.from], []byte(odd), text[p.to:])
}

// FuzzInfer makes types out of what the fuzzer says: each has a schema that
// compiles, and that what is marshalled fits.
func FuzzInfer(f *testing.F) {
	for _, seed := range []string{"", "\x06\x03\x00\x01\x02", "struct of many", "\x03\x00\x03\x01\x03\x02\x04", "\x00\x00\x00\x00\x00\x00"} {
		f.Add([]byte(seed), int64(len(seed)))
	}
	leaves := append(slices.Clone(leafTypes), textTypes...)
	f.Fuzz(func(t *testing.T, choices []byte, seed int64) {
		typ := generatedType(&bytesChooser{choices}, leaves, 3)
		sent, err := inferSchema(typ, false)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		if _, err := CompileSchema(sent, nil); err != nil {
			t.Fatalf("%v: %v\n%s", typ, err, sent)
		}
		marked, err := inferSchema(typ, true)
		if err != nil {
			t.Fatal(err)
		}
		k := schemaCompiler{opts: new(SchemaOptions), inferred: true}
		s, err := k.compile(marked, dialect{vocabularies: vocab2020})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := marshalled(t, typ, rand.New(rand.NewSource(seed))); ok {
			if err := s.Validate(text); err != nil {
				t.Fatalf("%v: %v\n%s\n%s", typ, err, text, marked)
			}
		}
	})
}

// FuzzDefaults fills in defaults: the document stays JSON, and what was there
// is there still.
func FuzzDefaults(f *testing.F) {
	for _, c := range []struct{ schema, doc string }{
		{`{"properties":{"a":{"default":1},"b":{"default":{"c":2}}}}`, `{"b":{"c":null}}`},
		{`{"properties":{"a":{"properties":{"b":{"default":[]}}}},"allOf":[{"properties":{"z":{"default":""}}}]}`, ` { "a" : { } } `},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"\"":{"default":"\u0000"}}}}}`, `{"\u0022":1}`},
		{`{"items":{"properties":{"a":{"default":1}}}}`, `[{},{"a":2},[],{"b":3}]`},
	} {
		f.Add([]byte(c.schema), []byte(c.doc))
	}
	f.Fuzz(func(t *testing.T, schema, doc []byte) {
		s, err := CompileSchema(schema, nil)
		if err != nil || validJSON(doc) != nil || repeatedMember(doc) != nil {
			return
		}
		filled := s.applyDefaults(bytes.Clone(doc))
		if err := validJSON(filled); err != nil {
			t.Fatalf("%s becomes %s: %v", doc, filled, err)
		}
		if !contains(&scanner{data: filled}, &scanner{data: doc}) {
			t.Fatalf("%s lost something: %s", doc, filled)
		}
	})
}

// contains reports whether all of a document is in another one, in its order.
func contains(all, some *scanner) bool {
	switch c := some.peek(); {
	case all.peek() != c:
		return false
	case c == '{':
		all.open('{')
		some.open('{')
		n := 0
		for m := 0; some.more('}', m); m++ {
			name := bytes.Clone(some.key())
			for {
				if !all.more('}', n) {
					return false
				}
				n++
				if bytes.Equal(all.key(), name) {
					break
				}
				all.skip()
			}
			if !contains(all, some) {
				return false
			}
		}
		for ; all.more('}', n); n++ {
			all.key()
			all.skip()
		}
		return true
	case c == '[':
		all.open('[')
		some.open('[')
		for n := 0; ; n++ {
			more := some.more(']', n)
			if all.more(']', n) != more {
				return false
			}
			if !more {
				return true
			}
			if !contains(all, some) {
				return false
			}
		}
	}
	return bytes.Equal(all.skip(), some.skip())
}
