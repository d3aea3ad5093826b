package mcp

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

type (
	grade      int                // writes itself as text
	gradeAt    int                // its pointer does
	wordAt     string             // its pointer does
	readsText  struct{ S string } // reads text, and writes its fields
	jsonAt     struct{ S string } // its pointer writes JSON
	saysTrue   struct{ n int }
	saysAt     struct{ n int }
	coin       byte // writes itself
	blob       []byte
	idList     []int
	matrix     []idList
	nestedList []nestedList
	ring       struct {
		Next *ring `json:"next,omitempty"`
		Rest []ring
	}
	evenType                     struct{ Odd *oddType }
	oddType                      struct{ Even map[string]evenType }
	entryOf[K comparable, V any] struct {
		Key   K
		Value V
	}
	intPointer *int

	Deepest  struct{ Z int }
	Deep     struct{ Deepest }
	OneWay   struct{ Deep }
	OtherWay struct{ Deep }
	Tagged   struct {
		Z string `json:"z"`
	}
	Shadow   struct{ X, Y int }
	shadowed struct{ X string }
	Word     string
	lowWord  string
	Asks     interface{ Ask() }
	Own      struct{ N int }
	Owner    struct {
		Own
		M int
	}
	Borrower struct {
		Own
		M int
	}
)

func (g grade) MarshalText() ([]byte, error)      { return []byte{'A' + byte(g)}, nil }
func (g *grade) UnmarshalText(text []byte) error  { *g = grade(text[0] - 'A'); return nil }
func (g *gradeAt) MarshalText() ([]byte, error)   { return []byte{'A' + byte(*g)}, nil }
func (w *wordAt) MarshalText() ([]byte, error)    { return []byte("w" + *w), nil }
func (r *readsText) UnmarshalText(b []byte) error { r.S = string(b); return nil }
func (j *jsonAt) MarshalJSON() ([]byte, error)    { return []byte(`[]`), nil }
func (c coin) MarshalText() ([]byte, error)       { return []byte("head"), nil }
func (saysTrue) JSONSchema() json.RawMessage      { return json.RawMessage(" true ") }
func (*saysAt) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"title":"at","type":"object","properties":{}}`)
}
func (Own) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"object","title":"own"}`) }
func (Owner) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","title":"owner"}`)
}

// inferenceTable has a Go type and the schema that is sent for it, for every
// kind that encoding/json handles. … is the end of a struct.
var inferenceTable = map[string][]struct {
	v    any
	want string
}{
	"numbers": {
		{int16(0), `{"type":"integer","minimum":-32768,"maximum":32767}`},
		{int64(0), `{"type":"integer"}`},
		{uint(0), `{"type":"integer","minimum":0}`},
		{uint8(0), `{"type":"integer","minimum":0,"maximum":255}`},
		{uint32(0), `{"type":"integer","minimum":0,"maximum":4294967295}`},
		{uintptr(0), `{"type":"integer","minimum":0}`},
		{float32(0), `{"type":"number"}`},
		{time.March, `{"type":"integer"}`},
		{new(json.Number), `{"type":"number"}`},
		{[]json.Number{"1"}, `{"type":"array","items":{"type":"number"}}`},
		{&big.Int{}, `{"type":"integer"}`},
		{[]big.Int{{}}, `{"type":"array","items":{"type":"integer"}}`},
	},
	"text": {
		{Word(""), `{"type":"string"}`},
		{blob{}, `{"type":"string","contentEncoding":"base64"}`},
		{new([]byte), `{"type":"string","contentEncoding":"base64"}`},
		{[][]byte{}, `{"type":"array","items":{"type":"string","contentEncoding":"base64"}}`},
		{[]coin{0}, `{"type":"array","items":{"type":"string"}}`},
		{grade(0), `{"type":"string"}`},
		{new(gradeAt), `{"type":"string"}`},
		{gradeAt(0), `{}`}, // a number unless it has an address
		{wordAt(""), `{"type":"string"}`},
		{readsText{}, `{}`}, // writes an object and reads text
		{new(encoding.TextMarshaler), `{}`},
		{time.Time{}, `{"type":"string","format":"date-time"}`},
		{[]*time.Time{}, `{"type":"array","items":{"type":"string","format":"date-time"}}`},
		{&big.Rat{}, `{"type":"string"}`},
		{netip.Prefix{}, `{"type":"string"}`},
		{netip.AddrPort{}, `{"type":"string"}`},
		{net.IP{}, `{"type":"string"}`},
		{slog.LevelInfo, `{"type":"string"}`},
		{regexp.MustCompile("a"), `{"type":"string"}`},
	},
	"open": {
		{new(any), `{}`},
		{new(error), `{}`},
		{new(json.RawMessage), `{}`},
		{[]json.RawMessage{}, `{"type":"array","items":{}}`},
		{jsonAt{}, `{}`},
		{&ownJSON{}, `{}`},
		{saysTrue{}, `{}`},
		{saysAt{}, `{"title":"at","type":"object","properties":{}}`},
		{&knowsItems{}, `{"type":"array","items":{}}`},
		{Owner{}, `{"type":"object","title":"owner","properties":{}}`},
		{Borrower{}, `{"type":"object","properties":{"N":{"type":"integer"},"M":{"type":"integer"}},"required":["N","M"],…`},
		{struct{ U *url.URL }{}, `{"type":"object","properties":{"U":{"type":"object","description":"a URL split in its parts, as Go's net/url has them"}},…`},
	},
	"arrays": {
		{[][]string{}, `{"type":"array","items":{"type":"array","items":{"type":"string"}}}`},
		{[0]int{}, `{"type":"array","items":{"type":"integer"},"minItems":0,"maxItems":0}`},
		{[2][1]bool{}, `{"type":"array","items":{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":1},"minItems":2,"maxItems":2}`},
		{&[]**bool{}, `{"type":"array","items":{"type":"boolean"}}`},
	},
	"maps": {
		{map[Word]int{}, `{"type":"object","additionalProperties":{"type":"integer"},"properties":{}}`},
		{map[uint8]int{}, `{"type":"object","propertyNames":{"pattern":"^(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"integer"},"properties":{}}`},
		{map[grade]int{}, `{"type":"object","additionalProperties":{"type":"integer"},"properties":{}}`},
		{map[netip.Addr][]int{}, `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}},"properties":{}}`},
		{map[time.Duration]struct{}{}, `{"type":"object","propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"object","properties":{},…,"properties":{}}`},
		{map[string]map[string]any{}, `{"type":"object","additionalProperties":{"type":"object","additionalProperties":{}},"properties":{}}`},
	},
	"fields": {
		{struct {
			A *string `json:"a"`
			B *string `json:"b" jsonschema:"required=true"`
			C []int   `json:"c,omitempty"`
			D inner   `json:"d,omitzero"`
			E any     `json:"e"`
			F string  `json:",omitempty"`
			G string  `json:"日本"`
			H string  `json:"a/b~c"`
			i string
		}{}, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"array","items":{"type":"integer"}},` +
			`"d":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],…,"e":{},"F":{"type":"string"},"日本":{"type":"string"},"a/b~c":{"type":"string"}},` +
			`"required":["b","e","日本","a/b~c"],…`},
		{struct {
			A int8          `json:"a,string"`
			B uint          `json:"b,string"`
			C float64       `json:"c,string"`
			D bool          `json:"d,string"`
			E string        `json:"e,string"`
			F *int          `json:"f,omitempty,string"`
			G time.Duration `json:"g,string"`
			H json.Number   `json:"h,string"`
			I []int         `json:"i,string"`
			J any           `json:"j,string"`
			K grade         `json:"k,string"`
			L slog.Level    `json:"l,string"`
			M intPointer    `json:"m,string"`
			N **int         `json:"n,string"`
			O time.Time     `json:"o,string"`
		}{}, `{"type":"object","properties":{"a":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"b":{"type":"string","pattern":"^(0|[1-9][0-9]*)$"},` +
			`"c":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},"d":{"type":"string","enum":["true","false"]},` +
			`"e":{"type":"string","pattern":"^\"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u[0-9a-fA-F]{4}))*\"$"},"f":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},` +
			`"g":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"h":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},` +
			`"i":{"type":"array","items":{"type":"integer"}},"j":{},"k":{"type":"string"},"l":{"type":"string"},"m":{"type":"integer"},"n":{"type":"integer"},"o":{"type":"string","format":"date-time"}},` +
			`"required":["a","b","c","d","e","g","h","i","j","k","l","o"],…`},
	},
	"promotion": {
		{struct { // the nearer one wins
			Shadow
			shadowed
			X bool
		}{}, `{"type":"object","properties":{"Y":{"type":"integer"},"X":{"type":"boolean"}},"required":["Y","X"],…`},
		{struct { // two on one level hide each other
			Shadow
			shadowed
		}{}, `{"type":"object","properties":{"Y":{"type":"integer"}},"required":["Y"],…`},
		{struct { // but for one with a tag
			Deepest
			Tagged `json:",omitempty"`
			Other  struct{} `json:"-"`
			Z      int      `json:"z"`
		}{}, `{"type":"object","properties":{"Z":{"type":"integer"},"z":{"type":"integer"}},"required":["Z","z"],…`},
		{struct { // Deep comes twice and hides its own fields, which are none; Deepest counts once
			OneWay
			OtherWay
		}{}, `{"type":"object","properties":{"Z":{"type":"integer"}},"required":["Z"],…`},
		{struct {
			Deep
			OneWay
			*Tagged
		}{}, `{"type":"object","properties":{"Z":{"type":"integer"},"z":{"type":"string"}},"required":["Z"],…`},
		{struct { // what is not a struct is a field
			Word
			Asks
			lowWord
			*Shadow `json:"shadow"`
		}{}, `{"type":"object","properties":{"Word":{"type":"string"},"Asks":{},"shadow":{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],…},"required":["Word","Asks"],…`},
	},
	"references": {
		{nestedList{}, `{"type":"array","items":{"$ref":"#"}}`},
		{&ring{}, `{"type":"object","properties":{"next":{"$ref":"#"},"Rest":{"type":"array","items":{"$ref":"#"}}},"required":["Rest"],…`},
		{[]ring{}, `{"type":"array","items":{"$ref":"#/$defs/ring"},"$defs":{"ring":{"type":"object","properties":{"next":{"$ref":"#/$defs/ring"},"Rest":{"type":"array","items":{"$ref":"#/$defs/ring"}}},"required":["Rest"],…}}`},
		{evenType{}, `{"type":"object","properties":{"Odd":{"type":"object","properties":{"Even":{"type":"object","additionalProperties":{"$ref":"#"}}},"required":["Even"],…},…`},
		{struct {
			B oddType
			A []oddType
		}{}, `{"type":"object","properties":{"B":{"$ref":"#/$defs/oddType"},"A":{"type":"array","items":{"$ref":"#/$defs/oddType"}}},"required":["B","A"],"additionalProperties":false,` +
			`"$defs":{"oddType":{"type":"object","properties":{"Even":{"type":"object","additionalProperties":{"type":"object","properties":{"Odd":{"$ref":"#/$defs/oddType"}},…}},"required":["Even"],…}}`},
		{[]entryOf[string, map[string]entryOf[string, *time.Time]]{}, `{"type":"array","items":{"type":"object","properties":{"Key":{"type":"string"},"Value":{"type":"object","additionalProperties":` +
			`{"type":"object","properties":{"Key":{"type":"string"},"Value":{"type":"string","format":"date-time"}},"required":["Key"],…}},"required":["Key","Value"],…}`},
		{[2]entryOf[entryOf[bool, int], entryOf[bool, int]]{}, `{"type":"array","items":{"type":"object","properties":{"Key":{"$ref":"#/$defs/entryOf_bool_int"},"Value":{"$ref":"#/$defs/entryOf_bool_int"}},"required":["Key","Value"],…,` +
			`"minItems":2,"maxItems":2,"$defs":{"entryOf_bool_int":{"type":"object","properties":{"Key":{"type":"boolean"},"Value":{"type":"integer"}},"required":["Key","Value"],…}}`},
		{struct {
			A, B idList `jsonschema:"some,minimum=1,minItems=2"`
			C, D matrix `jsonschema:"enum=1|2"`
		}{}, `{"type":"object","properties":{"A":{"$ref":"#/$defs/idList","description":"some","items":{"minimum":1},"minItems":2},"B":{"$ref":"#/$defs/idList","description":"some","items":{"minimum":1},"minItems":2},` +
			`"C":{"$ref":"#/$defs/matrix","items":{"items":{"enum":[1,2]}}},"D":{"$ref":"#/$defs/matrix","items":{"items":{"enum":[1,2]}}}},"required":["A","B","C","D"],"additionalProperties":false,` +
			`"$defs":{"idList":{"type":"array","items":{"type":"integer"}},"matrix":{"type":"array","items":{"$ref":"#/$defs/idList"}}}}`},
	},
}

func TestSchemasOfEveryKindOfType(t *testing.T) {
	valid := mustCompile(t, `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, nil)
	for kind, tests := range inferenceTable {
		t.Run(kind, func(t *testing.T) {
			for _, test := range tests {
				typ := reflect.TypeOf(test.v)
				got, err := schemaForType(typ)
				want := strings.ReplaceAll(test.want, "…", `"additionalProperties":false}`)
				if err != nil || string(got) != want {
					t.Errorf("schema of %v:\n got %s, %v\nwant %s", typ, got, err, want)
					continue
				}
				if err := valid.Validate(got); err != nil {
					t.Errorf("the schema of %v is not valid: %v", typ, err)
				}
				for range 3 {
					if again, err := inferSchema(typ, false); err != nil || string(again) != string(got) {
						t.Errorf("the second schema of %v is %s, %v", typ, again, err)
					}
				}
				if text, err := json.Marshal(test.v); err != nil {
					t.Logf("%v: %v", typ, err)
				} else if s, err := compileInferred(typ); err != nil || s.Validate(text) != nil {
					t.Errorf("%s does not fit the schema of %v: %v", text, typ, s.Validate(text))
				}
			}
		})
	}
}

// TestEveryAssertionOfATag writes each keyword that asserts something, finds
// it in the schema, and sees it obeyed.
func TestEveryAssertionOfATag(t *testing.T) {
	type fields struct {
		Type     any            `jsonschema:"type=boolean"`
		Enum     string         `jsonschema:"enum=a|b c|3"`
		Const    int            `jsonschema:"const=7"`
		Multiple float64        `jsonschema:"multipleOf=0.5"`
		Max      int            `jsonschema:"maximum=10"`
		Below    float64        `jsonschema:"exclusiveMaximum=1e2"`
		Min      *int           `jsonschema:"minimum=-1"`
		Above    int            `jsonschema:"exclusiveMinimum=0"`
		Longest  string         `jsonschema:"maxLength=2"`
		Shortest string         `jsonschema:"minLength=2"`
		Pattern  string         `jsonschema:"pattern=^a[,]b=?$"`
		Most     []int          `jsonschema:"maxItems=1"`
		Least    []int          `jsonschema:"minItems=1"`
		Unique   []any          `jsonschema:"uniqueItems=true"`
		Contains []int          `jsonschema:"contains={\"const\":1},minContains=2,maxContains=2"`
		Props    map[string]int `jsonschema:"minProperties=1,maxProperties=1"`
		Names    map[string]int `jsonschema:"propertyNames={\"maxLength\":1}"`
		Required map[string]int `jsonschema:"required=a|b"`
		Depends  map[string]int `jsonschema:"dependentRequired={\"a\":[\"b\"]}"`
		Elements []string       `jsonschema:"minLength=1,maxItems=2"`
		Format   string         `jsonschema:"when,format=date"`
	}
	tests := map[string][2][]string{ // what fits, and what does not
		"Type": {{"true"}, {"1"}}, "Enum": {{`"a"`, `"b c"`, `"3"`}, {`"b"`, "3"}}, "Const": {{"7", "7.0"}, {"8"}}, "Multiple": {{"1.5"}, {"1.2"}},
		"Max": {{"10"}, {"11"}}, "Below": {{"99.9"}, {"100"}}, "Min": {{"-1", "null"}, {"-2"}}, "Above": {{"1"}, {"0"}}, "Longest": {{`"éé"`}, {`"abc"`}},
		"Shortest": {{`"ab"`}, {`"é"`}}, "Pattern": {{`"a,b"`, `"a,b="`}, {`"a"`}}, "Most": {{"[]", "[1]"}, {"[1,2]"}}, "Least": {{"[1]"}, {"[]"}}, "Unique": {{`[1,"1"]`}, {"[1,1.0]"}},
		"Contains": {{"[1,2,1]"}, {"[1]", "[1,1,1]"}}, "Props": {{`{"a":1}`}, {"{}", `{"a":1,"b":1}`}}, "Names": {{`{"a":1}`}, {`{"ab":1}`}},
		"Required": {{`{"a":1,"b":1}`}, {`{"a":1}`}}, "Depends": {{`{"b":1}`}, {`{"a":1}`}}, "Elements": {{`["a"]`}, {`[""]`, `["a","b","c"]`}}, "Format": {{`"soon"`}, {"1"}},
	}
	typ := reflect.TypeFor[fields]()
	sent, err := schemaForType(typ)
	if err != nil {
		t.Fatal(err)
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		_, pairs := splitTag(f.Tag.Get("jsonschema"))
		for _, pair := range pairs {
			if key, _, _ := strings.Cut(pair, "="); !strings.Contains(string(sent), `"`+key+`":`) {
				t.Errorf("%s: no %s in %s", f.Name, key, sent)
			}
		}
		s, err := compileInferred(reflect.StructOf([]reflect.StructField{f}))
		if err != nil {
			t.Fatal(err)
		}
		for n, docs := range tests[f.Name] {
			for _, doc := range docs {
				if err := s.Validate([]byte(`{"` + f.Name + `":` + doc + `}`)); (err == nil) != (n == 0) {
					t.Errorf("%s, %s: %v", f.Name, doc, err)
				}
			}
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(tagKeywords)) {
		if schemaKeywords[keyword].compile == nil && !slices.Contains([]string{"x-mcp-header", "default", "description", "title", "examples", "deprecated", "readOnly", "writeOnly"}, keyword) {
			t.Errorf("%s is in a tag and nothing for a schema", keyword)
		}
	}
}

func TestTagsThatAreOnlyText(t *testing.T) {
	for _, text := range []string{"the name of the city", "one, two, and three", "a=b is not a keyword after a space, x =1", "é=ü", "in %, 0 to 100", `say "hi"`, "https://example.com/?a=1, b=2", "-", "commas,only", "a {\"json\":[1,2]}"} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: reflect.StructTag("jsonschema:" + fmt.Sprintf("%q", text))}})
		got, err := schemaForType(typ)
		want := `{"type":"object","properties":{"A":{"type":"integer","description":` + string(appendString(nil, text)) + `}},"required":["A"],"additionalProperties":false}`
		if strings.HasPrefix(text, "a=b") { // which begins like one
			if err == nil || !strings.Contains(err.Error(), `field A: the jsonschema tag has the unknown keyword "a"`) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", text, got, err, want)
		}
	}
}

// refusal returns why a tool with such arguments is refused.
func refusal[In any]() (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r)
		}
	}()
	AddTool(NewServer(Implementation{Name: "s", Version: "1"}, nil), Tool{Name: "t"}, func(context.Context, *Request, In) (string, error) { return "", nil })
	return ""
}

func TestTagsAreCheckedAtRegistration(t *testing.T) {
	type marked struct {
		N int `json:"n" jsonschema:"x-mcp-header=N"`
	}
	tests := []struct{ got, want string }{
		{refusal[struct {
			A string `jsonschema:"the region,x-mcp-header=Region"`
			B *bool  `jsonschema:"x-mcp-header=Dry-Run"`
			C struct {
				D int64 `json:"d" jsonschema:"x-mcp-header=Depth"`
			}
		}](), ""},
		{refusal[struct {
			A string `json:"a" jsonschema:"x-mcp-header=two words"`
		}](), "x-mcp-header at the root.a: must be a name that an HTTP header can have"},
		{refusal[struct {
			A string `json:"a" jsonschema:"x-mcp-header="`
		}](), "x-mcp-header at the root.a: must be a name"},
		{refusal[struct {
			A string `jsonschema:"x-mcp-header=Same"`
			B string `json:"b" jsonschema:"x-mcp-header=same"`
		}](), `x-mcp-header at the root.b: "same" is used twice`},
		{refusal[struct{ A []marked }](), "x-mcp-header at the root.A.items.n: only a property that is reached through properties"},
		{refusal[struct{ A, B marked }](), "x-mcp-header at the root.$defs.marked.n: only a property"},
		{refusal[struct {
			A []string `jsonschema:"x-mcp-header=A"`
		}](), "field A: the jsonschema tag's x-mcp-header=A does not fit array"},
		{refusal[struct {
			A struct {
				B *float64 `jsonschema:"x-mcp-header=A"`
			}
		}](), "field A.B: the jsonschema tag's x-mcp-header=A does not fit number"},
		{refusal[struct {
			A struct {
				B []struct {
					C int `jsonschema:"minimum=1,minimun=2"`
				}
			}
		}](), `field A.B.C: the jsonschema tag has the unknown keyword "minimun"`},
		{refusal[struct {
			A []int `jsonschema:"default=[1,\"b\"]"`
		}](), `field A: the jsonschema tag's value [1,"b"] does not fit: /1: must be an integer, got a string`},
		{refusal[struct {
			A struct{ N, M int } `json:"a" jsonschema:"default={\"N\":1}"`
		}](), `/properties/a/default: {"N":1} does not fit: /M: is required`},
		{refusal[struct {
			A []marked `json:"a" jsonschema:"default=[{}]"`
		}](), `/properties/a/default: [{}] does not fit: /0/n: is required`},
		{refusal[struct {
			A struct{ N, M int } `jsonschema:"default={\"N\":1,\"M\":2},examples={}"`
			B struct {
				N int `jsonschema:"default=1"`
			} `jsonschema:"default={}"`
		}](), ""},
		{refusal[struct{ *knowsItems }](), "JSONSchema of struct { *mcp.knowsItems } panics"},
		{refusal[struct{ A func() }](), "field A: func() has no JSON form"},
		{refusal[[]int](), "the arguments of a tool are a JSON object, which []int is not"},
	}
	for _, test := range tests {
		if test.want == "" && test.got != "" || !strings.Contains(test.got, test.want) {
			t.Errorf("got %s\nwant %s", test.got, test.want)
		}
	}
}
