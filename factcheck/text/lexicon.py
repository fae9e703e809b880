"""Tables of words by which drugs, conditions and verbs are recognised without a model."""

from __future__ import annotations


def words(table: str) -> frozenset[str]:
    """Return the words of a table written as one string."""
    return frozenset(table.split())


DRUG_SUFFIXES = tuple(
    sorted(
        words(
            "cillin mycin micin floxacin oxacin cycline conazole nidazole prazole sartan pril tril olol dipine "
            "vastatin gliflozin gliptin glutide natide tocin mab tinib ciclib zepam zolam azepine triptan setron "
            "parin xaban gatran oxetine traline citalopram pramine triptyline afil zosin terol meterol sone solone "
            "sonide dronate ovir avir buvir tegravir thiazide semide tanide lukast profen fenac coxib oxicam caine "
            "curium formin glitazone barbital phylline tropium fungin quine lactone renone trexate platin rubicin "
            "taxel cavir idine mustine thyroxine gliclazide zuride bamate racetam gabatin gabalin apine idone peridol "
            "pridone cyclovir ciclovir cef cefalexin prost tadine rizine pidem piclone zodone stigmine statin dazole "
            "azone osporin opram afine nafine razole grel sulfan"
        )
    )
)
NOT_DRUGS = words("cholesterol nostril sanguine")
DRUGS = words(
    "aspirin paracetamol acetaminophen insulin heparin warfarin digoxin lithium morphine codeine oxycodone "
    "fentanyl tramadol methadone naloxone ketamine adrenaline epinephrine noradrenaline atropine amiodarone "
    "diltiazem verapamil adenosine nitroglycerin glyceryl isosorbide hydralazine methyldopa clonidine "
    "levothyroxine carbimazole methimazole propylthiouracil metformin glibenclamide glimepiride glyburide "
    "glipizide gliclazide allopurinol colchicine febuxostat azathioprine ciclosporin cyclosporine tacrolimus "
    "mycophenolate hydroxychloroquine sulfasalazine leflunomide methotrexate prednisone prednisolone "
    "dexamethasone hydrocortisone betamethasone budesonide fluticasone beclometasone formoterol salbutamol "
    "albuterol montelukast ipratropium tiotropium theophylline aminophylline roflumilast amoxicillin "
    "co-amoxiclav augmentin cephalexin cefuroxime ceftriaxone cefotaxime ceftazidime meropenem gentamicin "
    "vancomycin doxycycline trimethoprim co-trimoxazole nitrofurantoin fosfomycin pivmecillinam fidaxomicin "
    "linezolid rifampicin rifampin isoniazid pyrazinamide ethambutol permethrin ivermectin mebendazole "
    "albendazole aciclovir acyclovir oseltamivir paxlovid finerenone spironolactone eplerenone furosemide "
    "bumetanide hydrochlorothiazide chlorthalidone indapamide ondansetron metoclopramide domperidone "
    "loperamide senna lactulose macrogol omeprazole ranitidine famotidine sumatriptan valproate carbamazepine "
    "phenytoin lamotrigine levetiracetam topiramate gabapentin pregabalin haloperidol quetiapine olanzapine "
    "risperidone clozapine sertraline fluoxetine citalopram escitalopram venlafaxine duloxetine mirtazapine "
    "amitriptyline bupropion diazepam lorazepam midazolam zopiclone melatonin cetirizine loratadine "
    "fexofenadine diphenhydramine pseudoephedrine dextromethorphan honey naltrexone buprenorphine varenicline "
    "sildenafil tadalafil vardenafil alprostadil finasteride tamsulosin oxybutynin mirabegron raloxifene "
    "tamoxifen letrozole clomifene misoprostol mifepristone oxytocin clopidogrel ticagrelor prasugrel "
    "apixaban rivaroxaban dabigatran edoxaban alteplase tenecteplase ezetimibe semaglutide liraglutide "
    "tirzepatide exenatide denosumab alendronate risedronate zoledronate teriparatide tiotropium/olodaterol "
    "olodaterol sacubitril benzathine ibuprofen naproxen diclofenac celecoxib indomethacin"
)
DRUG_CLASSES = words(
    "inhibitor inhibitors blocker blockers beta-blocker beta-blockers agonist agonists antagonist antagonists "
    "diuretic diuretics antibiotic antibiotics steroid steroids corticosteroid corticosteroids nsaid nsaids "
    "opioid opioids statin statins nitrate nitrates antihistamine antihistamines antacid antacids "
    "antidepressant antidepressants anticoagulant anticoagulants vaccine vaccines vaccination ssri ssris snri "
    "snris ppi ppis arb arbs arni mra macrolide macrolides penicillin penicillins cephalosporin "
    "cephalosporins benzodiazepine benzodiazepines bisphosphonate bisphosphonates decongestant decongestants "
    "probiotic probiotics antiviral antivirals antifungal antifungals painkiller painkillers "
    "anti-inflammatory anti-inflammatories laxative laxatives contraceptive contraceptives thiazide thiazides "
    "sulfonylurea sulfonylureas glp-1"
)
CONDITION_SUFFIXES = tuple(
    sorted(
        words(
            "itis osis aemia emia oma omas opathy algia uria plegia paresis penia megaly edema oedema embolism "
            "thyroidism aldosteronism carditis eclampsia phobia ectasis lithiasis ischaemia ischemia pneumonia epsis "
            "phylaxis rrhoea rrhea lepsy mellitus"
        )
    )
)
NOT_CONDITIONS = words("diagnosis prognosis diploma hypnosis osmosis symbiosis academia thomas homeopathy")
CONDITIONS = words(
    "diabetes prediabetes asthma hypertension stroke cancer pneumonia sepsis flu influenza measles mumps "
    "rubella migraine migraines epilepsy angina copd hiv aids malaria shingles chickenpox eczema gout obesity "
    "dementia depression anxiety autism adhd bppv reflux gerd ulcer ulcers hernia glaucoma cataract cataracts "
    "scabies thrush syphilis gonorrhoea gonorrhea chlamydia herpes covid covid-19 rsv croup concussion "
    "fracture fractures hypercalcaemia allergy psoriasis ckd dka hfref hfpef af vte dvt pe uti bronchiectasis "
    "haemorrhage hemorrhage vertigo hyperparathyroidism"
)
# Heads of names such as "chronic kidney disease"; alone they name nothing.
CONDITION_HEADS = words(
    "disease diseases disorder syndrome failure deficiency attack cancer tumour tumor poisoning fibrillation "
    "infarction infection haemorrhage hemorrhage nodule nodules beats cold wheeze state"
)
# Words that belong to the name of a condition or drug class that they precede.
MODIFIERS = words(
    "acute chronic primary secondary severe mild simple early type diabetic viral bacterial community-acquired "
    "heart kidney "
    "liver lung chest thyroid breast urinary tract common first coronary vascular pulmonary atrial blood graves "
    "ectopic "
    "familial subconjunctival hyperosmolar hyperglycaemic ace sglt2 beta calcium-channel proton pump glp-1 "
    "receptor h2 dpp-4 "
    "low-dose"
)
# These make a sentence stand by itself, but what follows it is rarely about them.
SUBSTANCES = words(
    "potassium calcium magnesium iron zinc oxygen sodium folate b12 salt alcohol smoking caffeine coffee "
    "carbohydrate glucose sugar protein fibre fiber creatinine"
)
SYMPTOMS = words(
    "fever cough wheeze rash nausea vomiting headache diarrhoea diarrhea constipation palpitations dizziness "
    "fatigue pain bleeding breathlessness swelling itching weight ecg pressure temperature exercise"
)

AUXILIARIES = words(
    "is are was were be can could may might must should will would shall cannot can't can’t won't won’t isn't "
    "isn’t aren't aren’t doesn't doesn’t does has have had shouldn't shouldn’t mustn't"
)
_BASE_VERBS = words(
    "help reduce lower raise increase decrease cause prevent treat work contain require need mean suggest "
    "show include make take give lead improve relieve affect interact occur happen spread act block stop slow "
    "last come become remain belong depend suit protect support kill clear settle resolve rise fall peak "
    "begin start cover qualify apply tend reach go get feel see worsen inhibit damage explain fit describe "
    "sound look seem appear point represent play set shorten prolong trigger differ vary"
)
VERBS = AUXILIARIES | {form for verb in _BASE_VERBS for form in (verb, verb + "s", verb + "es")} | {"carries", "carry"}
# Verbs that are no plural nouns, so that a heading with one of them says something.
PLAIN_VERBS = words(
    "reduces lowers raises prevents treats requires improves relieves affects interacts contains worsens "
    "becomes remains occurs"
)
IMPERATIVES = words(
    "take give use avoid start stop add prescribe continue increase reduce double halve split divide swallow "
    "chew apply inject inhale check measure monitor repeat recheck restart pause hold switch change replace "
    "try offer choose keep store call phone ring go see seek get tell ask contact refer treat screen test "
    "send order arrange consider withhold titrate taper recommend discontinue do don't never always"
)
# Verbs of which a drug may be the object.
DRUG_VERBS = words(
    "take give swallow divide split repeat restart pause hold stop continue titrate inject apply dilute store "
    "shake measure chew crush dissolve double halve skip start taper wean withhold discontinue increase "
    "reduce separate use avoid add prescribe try offer choose switch change replace combine recommend prefer "
    "consider"
)
# What may follow such a verb when it has no object of its own.
NO_OBJECT = words(
    "once twice daily slowly early suddenly immediately every only it them one two half whole until if when "
    "while as and or straight low abruptly regularly promptly"
)
# Nouns that stand for a drug named elsewhere; those of the second set only behind "the", "this" and the like.
DOSE_NOUNS = words(
    "dose doses dosage tablet tablets capsule capsules pill pills course inhaler injection injections syrup "
    "infusion overdose regimen"
)
DRUG_NOUNS = words("drug drugs medicine medicines medication medications agent agents treatment therapy")
DETERMINERS = words("the this that these those such each")
# Nouns that stand for any matter named elsewhere, behind "The" at the start of a sentence.
STANDING_NOUNS = (
    DOSE_NOUNS
    | DRUG_NOUNS
    | words(
        "condition disease infection risk risks benefit benefits effect effects symptoms cause causes diagnosis "
        "test cure interval maximum total level levels class combination vaccine tumour illness attack procedure "
        "operation patch"
    )
)
EVIDENCE_NOUNS = words(
    "trial trials study studies guideline guidelines analysis analyses meta-analysis review reviews research "
    "evidence survey registry data experts report reports council authors cohort"
)
PRONOUNS = words("it its they them their theirs this these that those both such")
# Sentence openers that are no subject of their own.
NO_SUBJECT = PRONOUNS | words(
    "you he she we i there here people patients children adults women men doctors clinicians symptoms most "
    "many some all any no one two three several another other others each every your his her our my the a an "
    "what who how why when where which yes if treatment side anyone everyone someone nobody also however then "
    "so and but or please"
)
PREPOSITIONS = words(
    "in at on with without for from after before during if when while once until since because although "
    "across under among despite as to unlike given through over between by about of"
)

# Labels made of these alone say nothing of the matter, so they do not travel.
STOCK = words(
    "a an and or of for on in the to at as with that this it these those them your you her his him their my "
    "our is are be here there some few other others further more most also additional general practical "
    "useful helpful important key main basic common quick brief short long final next first last steps step "
    "points point tips tip things thing notes note facts summary overview introduction conclusion background "
    "details information answer bottom line takeaway takeaways advice measures options what how why who when "
    "where know do expect tell say explain consider remember follow following now meantime while wait waiting "
    "way help coming comes before after she he they go goes going leaves leave until then please let me "
    "including include includes question questions reason reasons everyone everything anything else finally "
    "instead meanwhile follow-up plan can could might may will should possibilities ideas ways "
    "want explore try suggestions recommendations thoughts today"
)
# Headings with one of these name a part of the matter and leave its subject as it was.
SECTION_WORDS = words(
    "dose doses dosing dosage administration use using taking side adverse effects effect monitoring warnings "
    "warning precautions contraindications interactions interaction follow-up treatment treatments management "
    "diagnosis symptoms causes cause prevention pregnancy children adults tests test testing investigation "
    "investigations counselling counseling safety net regimen medicine medicines tablets prescribe "
    "prescribing escalation referral targets cut-offs risks benefits benefit lifestyle checks caveats "
    "confirming control storage elderly renal hepatic breastfeeding recommendations recommendation "
    "indications outlook self-care check result results duration frequency"
)
INCOMPLETE = words(
    "if when unless while because include includes including are is be was were have has with for as by to of "
    "or and such following these below steps you on in at that until after before than the a an any"
)
