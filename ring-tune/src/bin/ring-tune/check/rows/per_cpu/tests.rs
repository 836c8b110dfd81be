use super::*;

#[test]
fn a_mask_reads_back_as_its_cpus() {
    for list in ["0", "0-1", "31", "32", "0,63-64", "95", "4-5,130"] {
        let cpus: CpuSet = list.parse().unwrap();
        assert_eq!(CpuSet::from_mask(&mask(&cpus)).unwrap(), cpus, "{list}: {}", mask(&cpus));
    }
    assert_eq!(mask(&"0-1,32".parse().unwrap()), "1,00000003");
    assert_eq!(mask(&CpuSet::new()), "0");
}

#[test]
fn lists_of_the_command_line_know_all_and_the_last() {
    let online: CpuSet = "0-7".parse().unwrap();
    let list = |text| kernel_list(text, &online).map(|cpus| cpus.to_string());
    assert_eq!(list("all").as_deref(), Some("0-7"));
    assert_eq!(list("2-N").as_deref(), Some("2-7"));
    assert_eq!(list("1,3").as_deref(), Some("1,3"));
    assert_eq!(list("6-31").as_deref(), Some("6-7"), "those that are online");
    assert_eq!(list("0-7:1/4,3").as_deref(), Some("0,3-4"), "the first of each four");
    assert_eq!(list("1-N:2/3").as_deref(), Some("1-2,4-5,7"));
    assert_eq!(list("all:4/4").as_deref(), Some("0-7"));
    for strange in
        ["x", "0-7:2", "0-7:/", "0-7:0/4", "0-7:5/4", "0-7:1/0", "0-7:1/4/2", "1-0", "0-4294967295"]
    {
        assert_eq!(list(strange), None, "{strange}");
    }
}

#[test]
fn equal_values_make_one_group() {
    let values = [(0, "powersave"), (1, "performance"), (2, "powersave"), (3, "powersave")];
    assert_eq!(grouped(values), "performance on 1; powersave on 0,2-3");
}
