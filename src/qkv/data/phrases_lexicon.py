"""The words of the built-in phrase grammar: Korean and English, side by side, as plain tables.

Each table is text with a row a lexeme; **two or more blanks separate columns**, `-` is an empty cell and a line
that starts with `#` is a heading. The rows are data, the rules that inflect them are in `qkv.data.phrases`.

Korean predicates (verbs and adjectives) are given by the three stems that all their endings attach to:

    stem   before consonants     먹-고,   듣-고,    돕-고,    부르-고,  만들-고
    open   before (으)           먹으-세요, 들으-세요, 도우-세요, 부르-세요, 만드-세요
    inf    the -아/어 form       먹어,     들어,      도와,     불러,     만들어

`open` is `-` where the rule gives it (add 으 after a final consonant, drop a final ㄹ); irregular verbs spell it out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


def rows(table: str) -> list[list[str]]:
    """The cells of a table; '-' becomes the empty string."""
    lines = (line.strip() for line in table.strip().splitlines())
    cells = [re.split(r"\s{2,}", line) for line in lines if line and not line.startswith("#")]
    return [["" if cell == "-" else cell for cell in row] for row in cells]


@dataclass(frozen=True)
class Noun:
    """A noun. `english` is what the bare Korean noun means, article included: "an apple", "bread", "the door"."""

    korean: str
    english: str
    plural: str = ""  # "" where English cannot count it
    classes: tuple[str, ...] = ()
    counter: str = ""  # the Korean counter: 사과 세 개
    honorific: bool = False  # takes 께서 and -시-

    @property
    def article(self) -> str:
        first = self.english.split()[0]
        return first if first in ("a", "an", "the") else ""

    @property
    def bare(self) -> str:
        """The English noun without its article."""
        return self.english.removeprefix(self.article).strip()

    @property
    def always_plural(self) -> bool:
        """True for shoes, noodles, ...: the bare noun is an English plural."""
        return bool(self.plural) and self.english == self.plural


@dataclass(frozen=True)
class Predicate:
    """The stems of a Korean verb or adjective; see the module's docstring."""

    stem: str
    open: str
    inf: str


@dataclass(frozen=True)
class Verb:
    """A verb with the objects it makes sense with (none: intransitive) and the places it is done at."""

    korean: Predicate
    english: str  # "listen to": the first word inflects
    past: str
    ing: str
    objects: tuple[str, ...] = ()  # Korean nouns, or "person"
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Adjective:
    """An adjective with the Korean nouns it makes sense with."""

    korean: Predicate
    attributive: str  # Korean form before a noun: 큰
    english: str
    comparative: str
    superlative: str
    nouns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expression:
    """A fixed expression. English words may carry links as in templates: "next=0 week=1"; see `qkv.data.phrases`."""

    korean: str
    english: str


NOUN_TABLE = """
# Korean    English         plural         classes                           counter
  사과      an apple        apples         fruit countable                   개
  바나나    a banana        bananas        fruit countable                   개
  딸기      a strawberry    strawberries   fruit countable                   개
  오렌지    an orange       oranges        fruit countable                   개
  수박      a watermelon    watermelons    fruit                             -
  토마토    a tomato        tomatoes       vegetable countable               개
  감자      a potato        potatoes       vegetable countable               개
  당근      a carrot        carrots        vegetable countable               개
  양파      an onion        onions         vegetable countable               개
  달걀      an egg          eggs           ingredient countable              개
  샌드위치  a sandwich      sandwiches     dish countable                    개
  쿠키      a cookie        cookies        dish countable                    개
  밥        rice            -              dish                              -
  빵        bread           -              dish                              -
  고기      meat            -              dish                              -
  생선      fish            -              dish                              -
  치즈      cheese          -              dish                              -
  김치      kimchi          -              dish                              -
  수프      soup            -              dish                              -
  비빔밥    bibimbap        -              dish                              -
  불고기    bulgogi         -              dish                              -
  국수      noodles         noodles        dish                              -
  케이크    cake            -              dish                              -
  초콜릿    chocolate       -              dish                              -
  샐러드    salad           -              dish                              -
  물        water           -              drink                             잔
  우유      milk            -              drink                             잔
  주스      juice           -              drink                             잔
  커피      coffee          -              drink                             잔
  차        tea             -              drink                             잔
  맥주      beer            -              drink                             -
  책        a book          books          text small countable common       권
  신문      a newspaper     newspapers     text small                        -
  잡지      a magazine      magazines      text small countable              권
  소설      a novel         novels         text                              -
  만화책    a comic book    comic books    text small countable              권
  편지      a letter        letters        text small common                 -
  이메일    an email        emails         text                              -
  시        a poem          poems          text                              -
  보고서    a report        reports        text                              -
  기사      an article      articles       text                              -
  일기      a diary         diaries        writing                           -
  사전      a dictionary    dictionaries   small countable                   권
  치마      a skirt         skirts         clothes                           벌
  셔츠      a shirt         shirts         clothes                           벌
  코트      a coat          coats          clothes                           벌
  스웨터    a sweater       sweaters       clothes                           벌
  한복      a hanbok        hanboks        clothes                           -
  바지      pants           pants          clothes                           -
  신발      shoes           shoes          shoes                             -
  양말      socks           socks          shoes                             -
  가방      a bag           bags           small goods countable common      개
  시계      a clock         clocks         small goods countable common      개
  우산      an umbrella     umbrellas      small goods countable common      개
  지갑      a wallet        wallets        small goods countable common      개
  모자      a hat           hats           small goods countable common      개
  컵        a cup           cups           small goods countable common      개
  열쇠      a key           keys           small countable                   개
  인형      a doll          dolls          small goods countable common      개
  공        a ball          balls          small goods countable common      개
  반지      a ring          rings          small goods countable common      개
  칼        a knife         knives         small goods countable             -
  연필      a pencil        pencils        small goods common                -
  펜        a pen           pens           small goods countable             -
  상자      a box           boxes          small furniture countable common  개
  의자      a chair         chairs         furniture countable common        개
  책상      a desk          desks          furniture countable common        개
  탁자      a table         tables         furniture countable               개
  침대      a bed           beds           furniture countable               개
  카메라    a camera        cameras        small goods countable common      대
  컴퓨터    a computer      computers      goods countable common            대
  냉장고    a refrigerator  refrigerators  goods countable                   대
  지도      a map           maps           small goods                       -
  표        a ticket        tickets        small                             -
  사진      a photo         photos         small common                      -
  그림      a picture       pictures       art common                        -
  꽃        a flower        flowers        plant countable common            송이
  나무      a tree          trees          plant                             -
  선물      a present       presents       small countable                   개
  종이      paper           -              material                          -
  자전거    a bicycle       bicycles       vehicle countable common          대
  자동차    a car           cars           vehicle countable common          대
  버스      a bus           buses          transport                         -
  택시      a taxi          taxis          transport                         -
  기차      a train         trains         transport                         -
  비행기    an airplane     airplanes      flight                            -
  피아노    the piano       -              instrument fixed                  -
  기타      the guitar      -              instrument fixed                  -
  바이올린  the violin      -              instrument fixed                  -
  영화      a movie         movies         film                              -
  텔레비전  television      -              broadcast fixed                   -
  뉴스      the news        -              broadcast fixed                   -
  음악      music           -              music                             -
  노래      a song          songs          song                              -
  이야기    a story         stories        tale                              -
  강의      a lecture       lectures       lecture                           -
  축구      soccer          -              sport fixed                       -
  야구      baseball        -              sport fixed                       -
  농구      basketball      -              sport fixed                       -
  테니스    tennis          -              sport fixed                       -
  한국어    Korean          -              subject fixed                     -
  영어      English         -              subject fixed                     -
  일본어    Japanese        -              subject fixed                     -
  수학      math            -              subject fixed                     -
  역사      history         -              subject fixed                     -
  과학      science         -              subject fixed                     -
  문        the door        -              opening fixed                     -
  창문      the window      -              opening fixed                     -
  문제      a problem       problems       puzzle                            -
  질문      a question      questions      puzzle                            -
  단어      a word          words          word                              -
  이름      a name          names          word                              -
  개        a dog           dogs           animal pet countable              마리
  고양이    a cat           cats           animal pet countable              마리
  토끼      a rabbit        rabbits        animal pet countable              마리
  말        a horse         horses         animal farm countable             마리
  소        a cow           cows           animal farm countable             마리
  돼지      a pig           pigs           animal farm countable             마리
  원숭이    a monkey        monkeys        animal wild countable             마리
  호랑이    a tiger         tigers         animal wild countable             마리
  곰        a bear          bears          animal wild countable             마리
"""

# What English counts drinks by.
MEASURES = {"물": "glasses", "우유": "glasses", "주스": "glasses", "커피": "cups", "차": "cups"}

# Places. A room has things in it; one lives in a city (or country: far), goes to a goal, stays at a public place.
PLACE_TABLE = """
# Korean  English          at/in  class
  학교    school           at     public goal
  집      home             at     goal
  도서관  the library      at     public goal
  공원    the park         in     public goal
  시장    the market       at     public goal
  병원    the hospital     at     public goal
  식당    the restaurant   at     public goal
  카페    the cafe         at     public goal
  은행    the bank         at     goal
  우체국  the post office  at     goal
  극장    the theater      at     goal
  박물관  the museum       at     public goal
  공항    the airport      at     goal
  서점    the bookstore    at     public goal
  빵집    the bakery       at     goal
  호텔    the hotel        at     public goal
  동물원  the zoo          at     public goal
  수영장  the pool         at     public goal
  바다    the sea          at     goal
  산      the mountain     on     goal
  대학교  the university   at     public goal
  방      the room         in     room
  부엌    the kitchen      in     room
  교실    the classroom    in     room
  거실    the living room  in     room
  사무실  the office       in     room
  정원    the garden       in     room
  서울    Seoul            in     city goal
  부산    Busan            in     city goal
  한국    Korea            in     city far goal
  일본    Japan            in     city far goal
  프랑스  France           in     city far goal
"""

# Verbs, with where they are done and to what. Objects are nouns or classes of nouns; a verb without is intransitive.
CLASS_GROUPS = {
    "food": "fruit dish ingredient",
    "ware": "clothes shoes goods furniture vehicle",
    "sized": "가방 우산 모자 컵 인형 공 의자 책상 상자 그림 꽃 자동차",
    "priced": "가방 시계 우산 지갑 모자 반지 카메라 컴퓨터 자전거 자동차",
}
VERB_TABLE = """
# stem      open  inf       English/past/-ing         places                      objects
  먹        -     먹어      eat/ate                   식당 집 공원 부엌           food
  마시      -     마셔      drink/drank               카페 집 식당 정원           drink
  읽        -     읽어      read/read                 도서관 집 카페 방           text
  쓰        -     써        write/wrote               집 방 카페 사무실           편지 이메일 시 소설 보고서 기사 일기
  보        -     봐        watch                     집 거실 방                  film broadcast
  듣        들으  들어      listen to                 방 거실 정원                music song tale lecture
  공부하    -     공부해    study                     학교 도서관 집 교실         subject
  배우      -     배워      learn                     학교 대학교 서울            subject
  가르치    -     가르쳐    teach/taught              학교 대학교 서울            subject
  연주하    -     연주해    play                      집 거실 호텔                instrument
  하        -     해        play                      학교 공원 부산              sport
  청소하    -     청소해    clean                     -                           room
  요리하    -     요리해    cook                      부엌 집 식당                고기 생선 불고기 국수 달걀 감자
  부르      -     불러      sing/sang                 방 공원 학교                song
  사        -     사        buy/bought                시장 서울 부산              food vegetable drink ware 책 꽃 표
  팔        -     팔아      sell/sold                 시장 서울 부산              fruit vegetable ware 그림 꽃
  입        -     입어      wear/wore                 -                           셔츠 코트 스웨터 바지 한복
  신        -     신어      wear/wore                 -                           shoes
  만들      -     만들어    make/made                 부엌 집 방                  샌드위치 수프 샐러드 쿠키 인형 상자
  그리      -     그려      draw/drew                 공원 교실 방                plant animal 지도 그림
  찍        -     찍어      take/took                 공원 바다 산 프랑스         사진
  씻        -     씻어      wash                      부엌                        fruit vegetable 컵
  빨        -     빨아      wash                      -                           clothes 신발 양말
  열        -     열어      open                      -                           opening 상자 가방
  닫        -     닫아      close                     -                           opening 상자 가방
  찾        -     찾아      find/found                학교 공원 방                지갑 열쇠 우산 가방 반지 책 공
  잃어버리  -     잃어버려  lose/lost                 공항 시장 공원              지갑 열쇠 우산 모자 반지
  빌리      -     빌려      borrow                    도서관 학교                 책 소설 잡지 사전 자전거 연필
  고치      -     고쳐      fix                       -                           자전거 자동차 시계 컴퓨터 의자
  운전하    -     운전해    drive/drove               서울 부산                   자동차 버스 택시
  타        -     타        ride/rode                 -                           자전거 말 기차 버스
  만나      -     만나      meet/met                  카페 학교 공원 극장         person
  기다리    -     기다려    wait for                  학교 공원 공항              person 버스 택시 기차
  돕        도우  도와      help                      학교 병원                   person
  초대하    -     초대해    invite                    -                           person
  방문하    -     방문해    visit                     -                           public city
  심        -     심어      plant                     정원                        plant 감자 양파 당근
  자르      -     잘라      cut/cut/cutting           부엌                        고기 빵 수박 양파 당근 사과 종이
  굽        구우  구워      bake                      집 부엌                     빵 쿠키 케이크
  외우      -     외워      memorize                  -                           단어 시 노래 이름
  준비하    -     준비해    prepare                   집                          선물 샌드위치 샐러드 수프 보고서
  사용하    -     사용해    use                       -                           컴퓨터 카메라 사전 칼 지도 우산
  보내      -     보내      send/sent                 우체국                      편지 이메일 선물 사진
  받        -     받아      receive                   -                           편지 이메일 선물 꽃 사진
  옮기      -     옮겨      move                      -                           furniture 냉장고
  버리      -     버려      throw/threw away          -                           신문 의자 신발 상자 컵
  고르      -     골라      choose/chose              -                           책 영화 선물 반지 모자 치마 인형 셔츠
  이해하    -     이해해    understand/understood     -                           문제 질문 이야기 시 강의 소설
  풀        -     풀어      solve                     -                           문제
  깨        -     깨        break/broke               -                           컵 창문 시계
  가져오    -     가져와    bring/brought             -                           우산 책 가방 의자 사진 카메라 지도 컵
  기억하    -     기억해    remember                  -                           이름 이야기 단어 노래
  잊        -     잊어      forget/forgot/forgetting  -                           이름 이야기 단어
  자        -     자        sleep/slept               집 호텔 방                  -
  일하      -     일해      work                      은행 병원 식당 호텔 우체국  -
  걷        걸으  걸어      walk                      공원 바다                   -
  달리      -     달려      run/ran/running           공원 바다 학교              -
  수영하    -     수영해    swim/swam/swimming        바다 수영장 호텔            -
  춤추      -     춤춰      dance                     거실 공원 극장              -
  쉬        -     쉬어      rest                      집 공원 카페 호텔           -
  운동하    -     운동해    exercise                  공원 집 호텔                -
  놀        -     놀아      play                      공원 바다 집 정원           -
  이야기하  -     이야기해  talk                      카페 교실 거실              -
  산책하    -     산책해    take/took a walk          공원 바다 정원              -
  울        -     울어      cry                       방 거실                     -
  웃        -     웃어      laugh                     교실 거실                   -
"""

# The verbs that occur with every ending; the others occur in the most frequent templates only.
COMMON_VERBS = ["먹", "마시", "읽", "쓰", "보", "듣", "공부하", "연주하", "청소하", "부르", "자", "일하", "걷", "쉬"]

# What happens to one, rather than being done: not planned, wanted or going on.
EVENTS = ["잃어버리", "잊", "깨", "울", "찾", "받", "이해하", "기억하"]

# Predicates with a template of their own: liking, living, going, giving, raining.
LIKING_TABLE = """
# stem    open  inf     English/past/-ing
  좋아하  -     좋아해  like
  싫어하  -     싫어해  hate
"""
LIVING_TABLE = """
  살  -  살아  live
"""
GOING_TABLE = """
  가      -  가      go/went
  오      -  와      come/came
  돌아가  -  돌아가  return
"""
GIVING_TABLE = """
  주      -  줘      give/gave
  빌려주  -  빌려줘  lend/lent
  보내    -  보내    send/sent
"""

# The verbs whose honorific is a word of its own.
HONORIFIC_STEMS = {"먹": "드시", "자": "주무시"}

ADJECTIVE_TABLE = """
# stem      open      inf       before noun  English/-er/-est              nouns
  크        -         커        -            big/bigger/biggest            sized 개 고양이 말 나무
  작        -         작아      -            small/smaller/smallest        sized 개 고양이 토끼 사과
  비싸      -         비싸      -            expensive                     priced 치마 커피 표
  싸        -         싸        -            cheap/cheaper/cheapest        priced 치마 사과 표
  무겁      무거우    무거워    -            heavy/heavier/heaviest        가방 책상 의자 상자 컴퓨터 수박 카메라
  가볍      가벼우    가벼워    -            light/lighter/lightest        가방 컴퓨터 의자 상자 카메라 자전거 모자
  길        -         길어      -            long/longer/longest           편지 소설 영화 치마 연필 이야기 시
  짧        -         짧아      -            short/shorter/shortest        편지 소설 영화 치마 연필 이야기 시
  예쁘      -         예뻐      -            pretty/prettier/prettiest     치마 꽃 인형 컵 반지 가방 모자 그림
  빨갛      빨가      빨개      -            red                           치마 셔츠 가방 모자 우산 꽃 자동차 자전거
  파랗      파라      파래      -            blue                          치마 셔츠 가방 모자 우산 자동차 자전거
  하얗      하야      하얘      -            white                         치마 셔츠 가방 모자 꽃 자동차 고양이
  까맣      까마      까매      -            black                         셔츠 가방 모자 우산 자동차 고양이 개
  재미있    재미있으  재미있어  재미있는     interesting                   책 소설 잡지 영화 이야기 강의
  지루하    -         지루해    -            boring                        책 소설 잡지 영화 이야기 강의
  어렵      어려우    어려워    -            difficult                     문제 질문 단어 책 시
  쉽        쉬우      쉬워      -            easy/easier/easiest           문제 질문 단어 책
  중요하    -         중요해    -            important                     문제 질문 단어 편지 이메일 사진
  맛있      맛있으    맛있어    맛있는       delicious                     사과 딸기 빵 김치 수프 케이크 커피 주스 쿠키
  달        -         달아      -            sweet/sweeter/sweetest        사과 딸기 수박 케이크 쿠키 주스
  짜        -         짜        -            salty/saltier/saltiest        수프 김치 치즈 국수
  맵        매우      매워      -            spicy/spicier/spiciest        수프 김치 비빔밥 국수
  뜨겁      뜨거우    뜨거워    -            hot/hotter/hottest            커피 차 수프 물
  차갑      차가우    차가워    -            cold/colder/coldest           물 우유 주스 맥주
  신선하    -         신선해    -            fresh/fresher/freshest        사과 딸기 토마토 생선 우유 달걀
  깨끗하    -         깨끗해    -            clean/cleaner/cleanest        방 부엌 교실 컵 셔츠 호텔 공원
  더럽      더러우    더러워    -            dirty/dirtier/dirtiest        방 부엌 교실 컵 셔츠 가방
  넓        -         넓어      -            spacious                      방 부엌 교실 거실 공원 공항
  조용하    -         조용해    -            quiet/quieter/quietest        방 교실 도서관 공원 카페
  시끄럽    시끄러우  시끄러워  -            noisy/noisier/noisiest        교실 시장 식당 카페 공항
  빠르      -         빨라      -            fast/faster/fastest           자동차 자전거 버스 기차 말 토끼
  느리      -         느려      -            slow/slower/slowest           자동차 자전거 버스 기차 컴퓨터 소
  귀엽      귀여우    귀여워    -            cute/cuter/cutest             개 고양이 토끼 원숭이 돼지 인형 아이
  위험하    -         위험해    -            dangerous                     호랑이 곰 원숭이 칼
  친절하    -         친절해    -            kind/kinder/kindest           person
  똑똑하    -         똑똑해    -            smart/smarter/smartest        person 개 원숭이
  부지런하  -         부지런해  -            diligent                      person
  게으르    -         게을러    -            lazy/lazier/laziest           person 고양이
  건강하    -         건강해    -            healthy/healthier/healthiest  person
  강하      -         강해      -            strong/stronger/strongest     호랑이 곰 남자 여자
  유명하    -         유명해    -            famous                        가수 배우 작가 화가 그림 소설 영화 호텔
"""
# Adjectives that only stand before a noun.
NEW_TABLE = """
  새      new  가방 시계 우산 지갑 모자 카메라 컴퓨터 자전거 자동차 책
  오래된  old  시계 책 사진 그림 편지 가방 자전거 자동차 의자
"""
MOOD_TABLE = """
  행복하  -       행복해  -  happy
  슬프    -       슬퍼    -  sad
  피곤하  -       피곤해  -  tired
  바쁘    -       바빠    -  busy
  아프    -       아파    -  sick
  배고프  -       배고파  -  hungry
  외롭    외로우  외로워  -  lonely
"""
WEATHER_TABLE = """
  춥      추우  추워    -  cold
  덥      더우  더워    -  hot
  따뜻하  -     따뜻해  -  warm
  시원하  -     시원해  -  cool
  맑      -     맑아    -  clear
  흐리    -     흐려    -  cloudy
"""

# People. 그 학생 is "the student"; kin come with 제, "my"; elders take honorific particles and verbs.
PERSON_TABLE = """
  학생    a student         students
  의사    a doctor          doctors
  간호사  a nurse           nurses
  요리사  a cook            cooks
  가수    a singer          singers
  화가    a painter         painters
  작가    a writer          writers
  배우    an actor          actors
  기자    a reporter        reporters
  농부    a farmer          farmers
  경찰관  a police officer  police officers
"""
FOLK_TABLE = """
  아이  a child  children
  남자  a man    men
  여자  a woman  women
  소년  a boy    boys
  소녀  a girl   girls
"""
GROUP_TABLE = """
  아이들  the children  children
  학생들  the students  students
"""
KIN_TABLE = """
  친구    a friend           friends
  누나    an older sister    older sisters
  형      an older brother   older brothers
  여동생  a younger sister   younger sisters
  남동생  a younger brother  younger brothers
  아들    a son              sons
  딸      a daughter         daughters
  사촌    a cousin           cousins
"""
# Not 누나 and 형, whose Korean words depend on whether it is a woman or a man who has them.
KIN_OF_ANYONE = ["친구", "여동생", "남동생", "아들", "딸", "사촌"]
ELDER_TABLE = """
  선생님    the teacher
  교수님    the professor
  사장님    the boss
  할머니    Grandmother
  할아버지  Grandfather
  어머니    Mother
  아버지    Father
"""
NAME_TABLE = """
  민수  Minsu
  지영  Jiyeong
  수진  Sujin
  현우  Hyeonu
  유나  Yuna
  소라  Sora
  태민  Taemin
  동현  Donghyeon
  하나  Hana
  성훈  Seonghun
  미나  Mina
"""
PRONOUN_TABLE = """
  저    I     first
  우리  we    several
  그    he    -
  그녀  she   -
  그들  they  several
"""

PAST_TIMES = """
  어제         yesterday
  지난주에     last week
  지난달에     last month
  작년에       last year
  어젯밤에     last night
  오늘 아침에  this=0 morning=1
  그저께       two days ago
"""
FUTURE_TIMES = """
  내일         tomorrow
  모레         in two days
  다음 주에    next=0 week=1
  다음 달에    next=0 month=1
  내년에       next year
  오늘 저녁에  this=0 evening=1
  이번 주에    this=0 week=1
"""
ANY_TIMES = """
  월요일에  on Monday
  화요일에  on Tuesday
  수요일에  on Wednesday
  목요일에  on Thursday
  금요일에  on Friday
  토요일에  on Saturday
  일요일에  on Sunday
  아침에    in the morning
  오후에    in the afternoon
  저녁에    in the evening
  밤에      at night
  주말에    on the weekend
"""
HABITS = """
  매일      every day
  매주      every week
  아침마다  every morning
  저녁마다  every evening
  주말마다  every weekend
  여름에    in summer
  겨울에    in winter
"""
FREQUENCIES = """
  자주  often
  항상  always
  가끔  sometimes
  보통  usually
"""
DEGREES = """
  아주  very
  너무  too
  정말  really
"""
# Manner adverbs with the verbs they go with.
MANNER_TABLE = """
  천천히      slowly     먹 마시 읽 걷 운전하 옮기
  빨리        quickly    먹 달리 청소하 걷 외우 씻
  조용히      quietly    읽 이야기하 쉬 걷 울
  열심히      hard       공부하 일하 운동하
  즐겁게      happily    놀 춤추 이야기하 웃
  조심스럽게  carefully  운전하 옮기 자르 열 닫 읽
"""
# Tools with the verbs they serve, and what one travels by.
TOOL_TABLE = """
  칼      자르
  연필    쓰 그리
  펜      쓰 그리
  카메라  찍
  컴퓨터  쓰
"""
RIDES = {"far": "비행기", "city": "버스 기차 자동차", "near": "버스 택시 자전거 자동차"}
SIDES = """
  위에    on=0
  아래에  under=0
  앞에    in front=0 of
  뒤에    behind=0
  옆에    next=0 to
"""
NUMBERS = """
  한    one
  두    two
  세    three
  네    four
  다섯  five
  여섯  six
  일곱  seven
  여덟  eight
  아홉  nine
  열    ten
"""

# What is said, in both languages; the notation is explained in `qkv.data.phrases`.
# A group is headed by its name and by how often each of its templates is drawn, relative to the others.
TEMPLATES = """
[past 1.8]
  past                {who:는} {deed:past}-                         {who} {deed:ed}
  past_when           {who:는} {then} {deed:past}-                  {who} {deed:ed} {then}
  past_where          {who:는} {where:에서} {plan:past}-            {who} {plan:ed} {where:at}
  past_when_where     {who:는} {then} {where:에서} {plan:past}-     {who} {plan:ed} {where:at} {then}
  past_hour           {who:는} {hour} {deed:past}-                  {who} {deed:ed} {hour}
  past_not            {who:는} {deed:지} 않았-                      {who} did~12 not=2~1 {deed}~2
  past_not_when       {who:는} {then} {deed:지} 않았-               {who} did~23 not=3~2 {deed}~3 {then}
  past_could_not      {who:는} {deed:지} 못했-                      {who} could~12 not=2~1 {deed}~2
  past_failed         {who:는} {then} {what:를} 못 {verb:past}-     {who} could~34 not=3~4 {verb} {what} {then}
  past_with           {who:는} {friend:와} 함께 {plan:past}-        {who} {plan:ed} with=2~1 {friend}
  past_alone          {who:는} 혼자 {plan:past}-                    {who} {plan:ed} alone=1
  past_again          {who:는} 다시 {plan:past}-                    {who} {plan:ed} again=1
  past_manner         {who:는} {manner} {deed:past}-                {who} {deed:ed} {manner}
  past_tool           {who:는} {tool:로} {deed:past}-               {who} {deed:ed} with~1 {tool}
[wish 0.7]
  wanted              {me:는} {plan:고} 싶었-                       {me} wanted=2~1 to~12 {plan}~2
  wanted_not          {me:는} {plan:고} 싶지 않았-                  {me} did~23 not=3 want=2~13 to~12 {plan}~2
[two 0.8]
  past_two            {who:는} {task:고} {second:past}-             {who} {task:ed} and~1 {second:ed}
  past_after          {who:는} {task:ㄴ} 후에 {second:past}-        {who} {second:ed} after=2 {task:ing}
  past_before         {who:는} {task:기} 전에 {second:past}-        {who} {second:ed} before=2 {task:ing}
[went 0.9]
  went                {who:는} {then} {goal:에} {go:past}-          {who} {go:ed} {goal:to} {then}
  stayed              {who:는} {then} {public:에} 있었-             {who} {was}~3 {public:at} {then}
  went_not            {who:는} {goal:에} {go:지} 않았-              {who} did~23 not=3~2 {go}~3 {goal:to}
  went_by             {who:는} {ride:로} {goal:에} {go:past}-       {who} {go:ed} {goal:to} by~1 {ride:bare}
  went_with           {who:는} {friend:와} 함께 {goal:에} {go:past}-  {who} {go:ed} {goal:to} with=2~1 {friend}
  went_to_do          {who:는} {local:러} {site:에} {go:past}-      {who} {go:ed} {site:to} to~1 {local}
[gave 0.8]
  gave                {who:는} {friend:에게} {gift:를} {give:past}-  {who} {give:ed} {gift} to~1 {friend}
  gave_not            {who:는} {friend:에게} {gift:를} {give:지} 않았-  \
                        {who} did~34 not=4~3 {give}~4 {gift} to~1 {friend}
  gave_elder          {who:는} {elder:에게} {gift:를} 드렸-         {who} gave=3 {gift} to~1 {elder}
[rain 0.6]
  rained              {then} {city:에} {rain:past}-                 it~2 {rain:ed} {city:at} {then}
  rained_not          {then} {rain:지} 않았-                        it~1 did~12 not=2~1 {rain}~2 {then}
[elder_past 0.7]
  elder_past          {elder:는} {then} {task:시past}-              {elder} {task:ed} {then}
  elder_past_where    {elder:는} {where:에서} {task:시past}-        {elder} {task:ed} {where:at}
  elder_not           {elder:는} {task:높지} 않으셨-                {elder} did~12 not=2~1 {task}~2
  elder_went          {elder:는} {goal:에} {go:시past}-             {elder} {go:ed} {goal:to}
  elder_gave          {elder:는} {friend:에게} {gift:를} 주셨-      {elder} gave=3 {gift} to~1 {friend}
[habit 1.0]
  habit               {who:는} {habit} {task:now}-                  {who} {task:s} {habit}
  habit_where         {who:는} {habit} {where:에서} {task:now}-     {who} {task:s} {where:at} {habit}
  habit_often         {who:는} {often} {task:now}-                  {who} {often} {task:s}
  habit_goes          {who:는} {habit} {goal:에} {go:now}-          {who} {go:s} {goal:to} {habit}
  likes               {who:는} {liked:를} {like:now}-               {who} {like:s} {liked}
  likes_not           {who:는} {liked:를} {like:지} 않-             {who} {do}~23 not=3~2 {like}~3 {liked}
  lives               {who:는} {city:에서} {live:now}-              {who} {live:s} {city:at}
  works               {who:는} {workplace:에서} {work:now}-         {who} {work:s} {workplace:at}
[elder_habit 0.7]
  elder_habit         {elder:는} {habit} {task:시now}-              {elder} {task:s} {habit}
  elder_likes         {elder:는} {liked:를} {like:시now}-           {elder} {like:s} {liked}
  elder_at            {elder:는} {public:에} 계시-                  {elder} is~2 {public:at}
  elder_progressive   {elder:는} {task:높고} 계시-                  {elder} is~12 {task:ing}~2
[now 1.2]
  progressive         {who:는} {plan:고} 있-                        {who} {be}~12 {plan:ing}~2
  progressive_now     {who:는} 지금 {plan:고} 있-                   {who} {be}~23 {plan:ing}~3 now=1
  progressive_where   {who:는} {where:에서} {plan:고} 있-           {who} {be}~23 {plan:ing}~3 {where:at}
  is_at               {who:는} 지금 {public:에} 있-                 {who} {be}~3 {public:at} now=1
[future 1.3]
  future              {who:는} {plan:ㄹ} 것이-                      {who} will~12 {plan}~2
  future_when         {who:는} {soon} {plan:ㄹ} 것이-               {who} will~23 {plan}~3 {soon}
  future_where        {who:는} {where:에서} {plan:ㄹ} 것이-         {who} will~23 {plan}~3 {where:at}
  future_not          {who:는} {plan:지} 않을 것이-                 {who} will~123 not=2 {plan}~23
  future_with         {who:는} {friend:와} 함께 {plan:ㄹ} 것이-     {who} will~34 {plan}~4 with=2~1 {friend}
  future_goes         {who:는} {soon} {goal:에} {go:ㄹ} 것이-       {who} will~34 {go}~4 {goal:to} {soon}
  future_gives        {who:는} {friend:에게} {gift:를} {give:ㄹ} 것이-  {who} will~34 {give}~4 {gift} to~1 {friend}
  future_elder        {elder:는} {soon} {task:시ㄹ} 것이-           {elder} will~23 {task}~3 {soon}
[modal 1.2]
  can                 {who:는} {plan:ㄹ} 수 있-                     {who} can~123 {plan}~23
  cannot              {who:는} {plan:ㄹ} 수 없-                     {who} cannot=3~12 {plan}~23
  must                {who:는} {task:야} 하-                        {who} must~12 {task}~2
  may                 {who:는} {task:도} 되-                        {who} may~12 {task}~2
  must_not            {who:는} {task:면} 안 되-                     {who} must~123 not=2 {task}~3
  want_me             {me:는} {plan:고} 싶-                         {me} want=2~1 to~12 {plan}~2
  want_me_not         {me:는} {plan:고} 싶지 않-                    {me} do~23 not=3 want=2~13 to~12 {plan}~2
  want_other          {other:는} {plan:고} 싶어 하-                 {other} {want}=2~13 to~123 {plan}~23
[there 1.0]
  there_is            {room:에} {kept:가} 있-                       there~2 {be}~2 {kept} {room:at}
  there_is_by         {base} {side} {small:가} 있-                  there~3 {be}~3 {small} {side} {base:the}
  there_is_no         {room:에} {lacking:가} 없-                    there~2 {be}~2 no=2 {lacking:bare} {room:at}
  has                 {who:는} {own:가} 있-                         {who} {have}=2 {own}
  has_not             {who:는} {own:가} 없-                         {who} {do}~2 not=2 have=2 {own}
  is_by               {placed:는} {base} {side} 있-                 {placed} {be}~3 {side} {base:the}
[state 1.0]
  quality             {thing:는} {adj:now}-                         {thing} {be}~1 {adj}
  quality_not         {thing:는} {adj:지} 않-                       {thing} {be}~12 not=2 {adj}~2
  quality_degree      {thing:는} {degree} {adj:now}-                {thing} {be}~2 {degree} {adj}
  quality_and         {thing:는} {adj:고} {adj2:now}-               {thing} {be}~12 {adj} and~1 {adj2}
  comparative         {thing:는} {rival:보다} 더 {adj:now}-         {thing} {be}~3 {more}=2~3 {adj:er}~2 than~1 {rival}
  superlative         {thing:가} 가장 {adj:now}-                    {thing} {be}~2 the~12 {most}=1~2 {adj:est}~1
  mood                {me:는} {mood:now}-                           {me} {be}~1 {mood}
  mood_very           {me:는} {degree} {mood:now}-                  {me} {be}~2 {degree} {mood}
[job 1.3]
  is_job              {someone:는} {job:이}-                        {someone} {be}~1 {job}
  is_not_job          {someone:는} {job:가} 아니-                   {someone} {be}~2 not=2 {job}
[this 0.9]
  this_is             {this:는} {indefinite:이}-                    {this} is~1 {indefinite}
  this_is_not         {this:는} {indefinite:가} 아니-               {this} is~2 not=2 {indefinite}
  this_is_whose       {this:는} {owned:이}-                         {this} is~1 {owned}
  this_is_that        {this:는} {friend:가} {buy:ㄴ} {bought:이}-   {this} is~3 {bought:the} that~2 {friend} {buy:ed}
[was 0.8]
  quality_was         {thing:는} {adj:past}-                        {thing} {was}~1 {adj}
  quality_was_not     {thing:는} {adj:지} 않았-                     {thing} {was}~12 not=2 {adj}~2
  was_job             {someone:는} {job:였}-                        {someone} {was}~1 {job}
[reason 0.8]
  mood_was            {who:는} {then} {mood:past}-                  {who} {was}~2 {mood} {then}
  weather_was         {then} 날씨가 {weather:past}-                 the~1 weather=1 {was}~2 {weather} {then}
  rained_when         {then} {rain:past}-                           it~1 {rain:ed} {then}
[cause 0.4]
  mood_before         {who:는} {mood:past}-                         {who} {was}~1 {mood}
  weather_was_in      {city:는} 날씨가 {weather:past}-              the~1 weather=1 {was}~2 {weather} in~0 {city}
  rained_in           {city:에} {rain:past}-                        it~1 {rain:ed} {city:at}
[because 0.8]
  because_mood        {pronoun:는} {mood:past기} 때문에 {goal:에} {go:지} 않았-  \
                        {pronoun} did~45 not=5~4 {go}~5 {goal:to} because=2~1 {pronoun:again} {was}~1 {mood}
  because_mood_did    {pronoun:는} {mood:past기} 때문에 {act:past}-  \
                        {pronoun} {act:ed} because=2~1 {pronoun:again} {was}~1 {mood}
  because_rain        {rain:past기} 때문에 {pronoun:는} {goal:에} {go:지} 않았-  \
                        {pronoun} did~45 not=5~4 {go}~5 {goal:to} because=1~0 it~0 {rain:ed}
[command 0.8]
  request             {task:세요}.                                  please~0 {task}
  request_where       {where:에서} {task:세요}.                     please~1 {task} {where:at}
  request_manner      {manner} {task:세요}.                         please~1 {task} {manner}
  request_not         {task:지} 마세요.                             please~1 do~1 not=1~0 {task}~1
  request_go          {soon} {goal:에} {go:세요}.                   please~2 {go} {goal:to} {soon}
  suggest             {soon} {task:ㅂ시다}.                         let's~1 {task} {soon}
  suggest_where       {where:에서} {task:ㅂ시다}.                   let's~1 {task} {where:at}
  suggest_not         {task:지} 맙시다.                             let's~1 not=1~0 {task}~1
  suggest_go          {soon} {goal:에} {go:ㅂ시다}.                 let's~2 {go} {goal:to} {soon}
[question 0.5]
  ask_past            {other:는} {task:past}-?                      did~1 {other} {task}
  ask_past_when       {other:는} {then} {task:past}-?               did~2 {other} {task} {then}
  ask_past_you        {then} {task:시past}-?                        did~1 you~1 {task} {then}
  ask_habit           {other:는} {habit} {task:now}-?               {do}~2 {other} {task} {habit}
  ask_habit_you       {habit} {task:시now}-?                        do~1 you~1 {task} {habit}
  ask_likes           {other:는} {liked:를} {like:now}-?            {do}~2 {other} {like} {liked}
  ask_future          {other:는} {soon} {plan:ㄹ} 것이-?            will~23 {other} {plan}~3 {soon}
  ask_progressive     {other:는} 지금 {plan:고} 있-?                {be}~23 {other} {plan:ing}~3 now=1
  ask_can             {other:는} {plan:ㄹ} 수 있-?                  can~123 {other} {plan}~23
  ask_want            {plan:고} 싶으시-?                            do~1 you~1 want=1~0 to~01 {plan}~1
  ask_who             누가 {task:past}-?                            who=0 {task:ed}
  ask_who_when        {then} 누가 {task:past}-?                     who=1 {task:ed} {then}
  ask_what            {other:는} 무엇을 {verb:past}-?               what=1 did~2 {other} {verb}
  ask_what_when       {other:는} {then} 무엇을 {verb:past}-?        what=2 did~3 {other} {verb} {then}
  ask_where           {other:는} 어디에서 {task:past}-?             where=1 did~2 {other} {task}
  ask_when            {other:는} 언제 {task:past}-?                 when=1 did~2 {other} {task}
  ask_why             {other:는} 왜 {task:past}-?                   why=1 did~2 {other} {task}
  ask_where_went      {other:는} {then} 어디에 {go:past}-?          where=2 did~3 {other} {go} {then}
  ask_when_goes       {other:는} 언제 {goal:에} {go:ㄹ} 것이-?      when=1 will~34 {other} {go}~4 {goal:to}
  ask_where_is        {placed:는} 어디에 있-?                       where=1 {be}~2 {placed}
  ask_who_is          {person:는} 누구이-?                          who=1 {be}~1 {person}
  ask_what_is         {this:는} 무엇이-?                            what=1 is~1 {this}
  ask_is_job          {someone:는} {job:이}-?                       {be}~1 {someone} {job}
  ask_quality         {thing:는} {adj:now}-?                        {be}~1 {thing} {adj}
  ask_has             {other:는} {own:가} 있-?                      {do}~2 {other} have=2 {own}
  ask_there           {room:에} {kept:가} 있-?                      {be}~2 there~2 {kept} {room:at}
  ask_how_many        {room:에} {counted:가} 몇 {counter} 있-?  \
                        how=2 many=2~3 {counted:bare} {be}~4 there~4 {room:at}
  ask_whose           이 {simple:는} 누구의 것이-?                  whose=2 {simple:bare} is~3 this=0
"""


def _open(stem: str) -> str:
    """The form before (으) of a regular stem: 먹 -> 먹으, 가 -> 가, 만들 -> 만드."""
    final = (ord(stem[-1]) - 0xAC00) % 28
    if final == 8:  # ㄹ
        return stem[:-1] + chr(ord(stem[-1]) - final)
    return stem + "으" if final else stem


def _predicate(stem: str, open_: str, inf: str) -> Predicate:
    return Predicate(stem, open_ or _open(stem), inf)


def _verb(stem: str, open_: str, inf: str, english: str, places: str = "", objects: str = "") -> Verb:
    forms, *rest = english.split()  # "throw/threw away": the parts that no rule gives
    base, past, ing = (*forms.split("/"), "", "")[:3]
    return Verb(
        _predicate(stem, open_, inf),
        " ".join([base, *rest]),
        past or _ed(base),
        ing or _ing(base),
        _expand(objects),
        tuple(places.split()),
    )


def _ed(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


def _ing(verb: str) -> str:
    return verb.removesuffix("e") + "ing"


def _adjective(stem: str, open_: str, inf: str, attributive: str, english: str, nouns: str = "") -> Adjective:
    predicate = _predicate(stem, open_, inf)
    with_n = predicate.open[:-1] + chr(ord(predicate.open[-1]) + 4)  # final ㄴ
    english, comparative, superlative = (*english.split("/"), "", "")[:3]
    return Adjective(
        predicate,
        attributive or with_n,
        english,
        comparative or f"more {english}",
        superlative or f"most {english}",
        _expand(nouns),
    )


def _expand(words: str) -> tuple[str, ...]:
    """The Korean nouns that a list of classes and nouns stands for; "person" stays as it is."""
    found: dict[str, None] = {}
    parts = [part for word in words.split() for part in CLASS_GROUPS.get(word, word).split()]
    for word in parts:
        members = [noun.korean for noun in NOUNS.values() if word in noun.classes]
        if not members and word != "person" and word not in NOUNS:
            raise ValueError(f"neither a class nor a noun: {word}")
        found.update(dict.fromkeys(members or [word]))
    return tuple(found)


def _people(table: str, *classes: str, honorific: bool = False) -> tuple[Noun, ...]:
    return tuple(
        Noun(row[0], row[1], row[2] if len(row) > 2 else "", ("human", *classes), honorific=honorific)
        for row in rows(table)
    )


def _expressions(table: str) -> tuple[Expression, ...]:
    return tuple(Expression(*row) for row in rows(table))


PEOPLE = _people(PERSON_TABLE, "job")
FOLK = _people(FOLK_TABLE)
GROUPS = _people(GROUP_TABLE, "fixed", "several")
KIN = _people(KIN_TABLE, "kin")
ELDERS = _people(ELDER_TABLE, "fixed", honorific=True)
NAMES = _people(NAME_TABLE, "name", "fixed")
PRONOUNS = tuple(
    Noun(korean, english, "", ("human", "fixed", *classes.split())) for korean, english, classes in rows(PRONOUN_TABLE)
)
PLACES = {row[0]: (Noun(row[0], row[1], "", ("fixed", *row[3].split())), row[2]) for row in rows(PLACE_TABLE)}
NOUNS = {row[0]: Noun(row[0], row[1], row[2], tuple(row[3].split()), row[4]) for row in rows(NOUN_TABLE)}
NOUNS |= {korean: noun for korean, (noun, _) in PLACES.items()}
NOUNS |= {noun.korean: noun for noun in (*PEOPLE, *FOLK)}
VERBS = {row[0]: _verb(*row) for row in rows(VERB_TABLE)}
LIKING, LIVING, GOING, GIVING = (
    tuple(_verb(*row) for row in rows(table)) for table in (LIKING_TABLE, LIVING_TABLE, GOING_TABLE, GIVING_TABLE)
)
ADJECTIVES = tuple(_adjective(*row) for row in rows(ADJECTIVE_TABLE))
MOODS, WEATHERS = (tuple(_adjective(*row) for row in rows(table)) for table in (MOOD_TABLE, WEATHER_TABLE))
ONLY_BEFORE_NOUNS = tuple((korean, english, _expand(nouns)) for korean, english, nouns in rows(NEW_TABLE))
MANNERS = tuple((Expression(korean, english), tuple(verbs.split())) for korean, english, verbs in rows(MANNER_TABLE))
TOOLS = {korean: tuple(verbs.split()) for korean, verbs in rows(TOOL_TABLE)}
