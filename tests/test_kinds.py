"""Kinds of sentences: conservative classes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factcheck.schema import Claim
from factcheck.text.kinds import classify

EXAMPLES = {
    "question": [
        "How long has the cough lasted?",
        "好吗？",
        "هل هو آمن؟",
        "¿Es seguro?",
        "(Is it safe?)",
        '"Is it safe?"',
        "Really?!",
        "Do you have a fever? ",
        "What dose should I take？",
        "Is 5 mg enough⁇",
    ],
    "greeting": [
        "I'm sorry you feel unwell.",
        "Hope this helps!",
        "Hello,",
        "Hi there!",
        "Dear Dr. Smith,",
        "Thank you for your question.",
        "Thanks for sharing these details.",
        "I hope you feel better soon.",
        "Take care!",
        "Take care of yourself.",
        "Best wishes",
        "Kind regards, Dr Jones",
        "I'm sorry to hear that.",
        "I'm so sorry to hear about your loss.",
        "You're welcome.",
        "Great question!",
        "That sounds very stressful.",
        "This must be worrying for you.",
        "I understand how worrying this must be.",
        "I can understand your concern.",
        "Good luck with everything!",
        "Feel free to ask if you have more questions.",
        "Let me know if you have any other questions.",
        "I'm glad you asked first.",
        "Hello and thank you for your question.",
        "Wishing you a speedy recovery.",
        "Get well soon!",
        "Of course!",
        "Happy to help.",
        "I hope this information is helpful.",
        "Congratulations on your pregnancy!",
        "I'm sorry to hear that your son has asthma.",
        "I am so sorry to hear you're experiencing lower back pain.",
        "Certainly!",
        "Well done!",
    ],
    "care_advice": [
        "Call your doctor if the fever lasts more than three days.",
        "Go to the emergency department now.",
        "See a GP promptly for fever.",
        "Get emergency help if he is hard to wake.",
        "Please seek medical attention immediately.",
        "Call 911.",
        "You should see a doctor if it persists.",
        "If you have chest pain, call an ambulance.",
        "Ask your pharmacist about interactions.",
        "Speak to your doctor before starting or stopping.",
        "Take him to the emergency department now, or call an ambulance if he is drowsy.",
        "Numbness around the genitals needs emergency care.",
        "Book a routine appointment in the next few weeks.",
        "Contact your maternity unit straight away if you have bleeding.",
        "Consult a healthcare professional before use.",
        "Seek urgent help if a reading reaches 180/120 with chest pain.",
        "Ring 111 if you are unsure.",
        "Take the child to hospital at once.",
    ],
    "personal": [
        "Your scan last Tuesday was normal.",
        "I cannot examine you.",
        "I can't examine you.",
        "Your blood tests came back normal.",
        "You mentioned that you take metformin.",
        "You told me about your headaches.",
        "I am not a doctor.",
        "As an AI, I cannot diagnose you.",
        "I don't have access to your medical records.",
        "Your X-ray from last week showed no change.",
        "You had a heart attack last year.",
        "I'm an AI language model.",
        "This is not medical advice.",
        "I haven't seen your results.",
        "This information is for educational purposes only and is not a substitute for medical advice.",
        "I don’t have access to the image or the official radiology report.",
    ],
    "statement": [
        "You can repeat the dose every 3 to 4 hours",
        "Your description fits BPPV best",
        "At your age this level also means you have primary aldosteronism",
        "What you describe is definitely ectopic beats",
        "you can promise her that this nodule is benign",
        "Hello, ibuprofen 400 mg is safe for you.",
        "I'm sorry, but you can't take ibuprofen with warfarin.",
        "Take care to avoid alcohol.",
        "Take care with grapefruit juice.",
        "Certainly avoid alcohol with it.",
        "It can be difficult to swallow tablets.",
        "Hi, take two now.",
        "Thanks to vaccination, outbreaks are rare.",
        "I cannot examine you, but the dose is 5 mg.",
        "I cannot see any reason to avoid exercise.",
        "I do not know of any interaction between them.",
        "Your blood test was 6.5%, which means diabetes.",
        "They were withdrawn in 2015.",
        "Your pharmacist was right about syrups.",
        "The doctor will call you.",
        "No problem taking it with alcohol.",
        "You are welcome to take it with food.",
        "Good hydration helps.",
        'Ask "is it safe?"',
        "Be well hydrated before the scan.",
        "Your brother's situation is different from yours.",
        "Your kidneys clear the drug.",
        "I see your description fits BPPV best.",
        "It must be taken with food.",
        "",
        "500 mg",
        "I know that stress causes ulcers.",
        "I'm glad to say that it is benign.",
        "Your labs showed early diabetic kidney disease.",
        "He does not need emergency care.",
        "The total should not go above 1,000 mg.",
        "Your doctor may also check your pulse.",
        "I recommend 400 mg of ibuprofen.",
        "Thanks to the vaccine the risk is low.",
        "You had a heart attack, so you need aspirin.",
        "Your results mean you have anaemia.",
        "Dear patient, take aspirin daily.",
        "I hope you take 400 mg of it daily.",
        "I'm sorry to hear you were told to take ibuprofen.",
        "Below 5 mg it is safe.",
        "Thank you, but the dose is 5 mg.",
        "They were approved in 2004.",
        "Her labs showed a high calcium because of a tumour.",
        "“Take it daily,” he said.",
        "Yes.",
        "No, it is not safe.",
        "You said it is safe, which is wrong.",
        "She was started on insulin because her HbA1c was high.",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in EXAMPLES.items() for text in texts])
def test_examples(kind, text):
    assert classify(text) == kind


@pytest.mark.parametrize("greeting", EXAMPLES["greeting"])
@pytest.mark.parametrize("statement", ["take ibuprofen 400 mg", "this means you have asthma", "the dose is safe"])
def test_a_greeting_joined_with_a_medical_statement_is_a_statement(greeting, statement):
    joined = f"{greeting.rstrip('.!,')}, {statement}."
    assert classify(joined) == "statement"


@pytest.mark.parametrize("text", EXAMPLES["personal"])
def test_a_personal_statement_from_which_medicine_is_inferred_is_a_statement(text):
    assert classify(f"{text.rstrip('.')}, which means that you must take 5 mg of ramipril.") == "statement"


def test_checkable_kinds():
    checkable = {
        kind: Claim(id="c", answer_id="a", text="x", span=(0, 1), sentence_span=(0, 1), kind=kind).checkable
        for kind in EXAMPLES
    }
    assert checkable == {
        "question": False,
        "greeting": False,
        "care_advice": True,
        "personal": False,
        "statement": True,
    }


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=300))
def test_any_text_has_a_kind_and_white_space_does_not_matter(text):
    assert classify(text) == classify(" " + text.replace(" ", "  ") + "\n")


def test_time_is_bounded_for_long_sentences():
    for unit in ("sorry ", "your test ", "call a ", "you had a ", "if you have more "):
        assert classify(unit * 400) in EXAMPLES
